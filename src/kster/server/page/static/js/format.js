// Numbers and dates for people.

const whole = new Intl.NumberFormat("en");

export const count = (number) => whole.format(number);
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const percent = (share) => `${Math.round(100 * share)} %`;

/** A share that is never shown as nothing, or as everything, when it is not. */
export function share(value) {
  if (value > 0 && value < 0.005) return "< 1 %";
  if (value < 1 && value > 0.995) return "> 99 %";
  return percent(value);
}

export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB"];
  let power = 0;
  while (number >= 1000 && power < units.length - 1) {
    number /= 1000;
    power += 1;
  }
  return `${number < 10 && power > 0 ? number.toFixed(1) : Math.round(number)} ${units[power]}`;
}

export const figure = (number, digits = 2) =>
  number === null || number === undefined ? "–" : number.toFixed(digits);

export const moment = (iso) => new Date(iso).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });

export const day = (iso) =>
  new Date(iso).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
