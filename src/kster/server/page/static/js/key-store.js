// The API key: kept for this tab, or on this device if asked to.

const NAME = "kster-key";

export const currentKey = () => sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);

export function keepKey(key, onDevice) {
  forgetKey();
  (onDevice ? localStorage : sessionStorage).setItem(NAME, key);
}

export function forgetKey() {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}
