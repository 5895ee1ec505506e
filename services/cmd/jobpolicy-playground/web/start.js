'use strict';

// Starts the engine. engine.js holds it compressed, as text: so the page also opens from
// a folder, where a browser reads no other files.
(async () => {
  const begin = performance.now();
  const packed = bytesOf(jobpolicyEngine);
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const code = await new Response(plain).arrayBuffer();
  const go = new Go();
  const { instance } = await WebAssembly.instantiate(code, go.importObject);
  window.jobpolicyReady = () => {
    document.documentElement.dataset.engineMs = Math.round(performance.now() - begin);
    startApp();
  };
  go.run(instance);
})().catch((e) => {
  document.getElementById('loading').textContent = 'The engine does not start: ' + e.message + '. Expected a browser with WebAssembly and DecompressionStream, of 2023 or newer.';
});
