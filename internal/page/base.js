"use strict";
// part returns the value of a part of the page, decompressed; it keeps the last few.
const parts = new Map();
let ready; // a promise: the page's script has run
function part(name) {
  if (!parts.has(name)) {
    if (parts.size >= 8) parts.delete(parts.keys().next().value);
    parts.set(name, (async () => {
      const text = document.getElementById("part-" + name).content.textContent;
      const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      return JSON.parse(await new Response(stream).text());
    })());
  }
  return parts.get(name);
}
