// Keeps the state of the page in the fragment of its address, which browsers send to no server.

const MAX_BYTES = 1_000_000;

async function pipe(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BYTES) throw new Error("too large");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Encodes a state as text that is safe in a link. */
export async function pack(state) {
  const bytes = await pipe(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text in base64 of a link, as UTF-8. Throws if it is none. */
export const plain = (text) => new TextDecoder("utf-8", {fatal: true}).decode(bytes(text));

function bytes(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

/** Decodes the state of a link. Throws if it holds none. */
export async function unpack(text) {
  return JSON.parse(new TextDecoder().decode(await pipe(new DecompressionStream("deflate-raw"), bytes(text))));
}
