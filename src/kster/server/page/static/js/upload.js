// Sending a file, with progress (which fetch does not report).

import { Unreachable, keyHeaders, refusal } from "./api.js";
import { emit } from "./state.js";

/** What the server answers. progress: called with the share that has been sent. */
export function upload(path, file, fields, progress) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(keyHeaders())) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.addEventListener(
      "progress",
      (event) => event.lengthComputable && progress(event.loaded / event.total),
    );
    request.addEventListener("load", () =>
      request.status < 300
        ? resolve(request.response)
        : reject(refusal(request.status, request.response ?? {})),
    );
    request.addEventListener("error", () => {
      emit("lost");
      reject(new Unreachable());
    });
    request.send(form);
  });
}
