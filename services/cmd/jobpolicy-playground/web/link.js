'use strict';

// A link holds the whole state of the page behind its #: "1." and the state in JSON,
// compressed, in base64 for URLs.
const linkVersion = '1.';
const maxState = 1 << 20;

// bytesOf decodes base64. It is written for megabytes.
function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function readAll(stream, limit) {
  const chunks = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      throw new Error('too long');
    }
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function toLink(state) {
  const packed = await readAll(new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream('deflate-raw')), maxState);
  let text = '';
  for (const byte of packed) text += String.fromCharCode(byte);
  return '#' + linkVersion + btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

// fromLink returns the state of a link, or throws an error that says what is wrong.
async function fromLink(hash, fields) {
  const damaged = new Error('This link is damaged: expected a link that this page has made. The first example is shown instead.');
  if (!hash.startsWith('#' + linkVersion)) throw damaged;
  let state;
  try {
    const packed = bytesOf(hash.slice(1 + linkVersion.length).replaceAll('-', '+').replaceAll('_', '/'));
    const data = await readAll(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')), maxState);
    state = JSON.parse(new TextDecoder().decode(data));
  } catch {
    throw damaged;
  }
  const out = {};
  for (const field of fields) {
    const value = state === null ? undefined : state[field];
    if (value !== undefined && typeof value !== 'string') throw damaged;
    out[field] = value ?? '';
  }
  return out;
}
