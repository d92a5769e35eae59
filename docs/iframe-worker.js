// Search from the file system: browsers refuse workers of pages without a server, so the worker's script runs in
// a hidden frame instead, with messages both ways. Elsewhere the browser's own workers are left alone.
"use strict";
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => this.load(script)), Promise.resolve());
      this.ready = this.load(address);
    }

    load(address) {
      const script = this.frame.contentDocument.createElement("script");
      return new Promise((done, failed) => {
        Object.assign(script, { src: address, onload: done, onerror: failed });
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      const Event = this.frame.contentWindow.MessageEvent;
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new Event("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
