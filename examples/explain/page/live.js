/* live.js - the library in the page: loads the WebAssembly module, and asks it for a lesson.
 *
 *     const live = await Live.load();
 *     if (live) show(live.answer("lesson 5\nheads 2\nseed 3"));
 *     else say(Live.refused);
 *
 * live.h says what a request and its answer are. The module needs nothing from outside but what a C library asks of a
 * system (WASI), and gets none of it: no files, no clock, no output. */
"use strict";

const Live = (() => {
    const NO_SUCH_CALL = 52; /* WASI's ENOSYS */

    /* The functions that the module imports. view() makes a new DataView each time, because memory that grows gets
     * another buffer. */
    function system(module, view) {
        const zero = (...addresses) => {
            for (const address of addresses) view().setUint32(address, 0, true);
            return 0;
        };
        const known = {
            environ_sizes_get: zero,
            args_sizes_get: zero,
            environ_get: () => 0,
            args_get: () => 0,
            clock_time_get: (clock, precision, address) => zero(address, address + 4),
            proc_exit: status => { throw new Error(`exit ${status}`); },
            /* Says that all was written: a C library tries again otherwise. */
            fd_write(file, list, length, written) {
                let bytes = 0;
                for (let i = 0; i < length; i++) bytes += view().getUint32(list + 8 * i + 4, true);
                view().setUint32(written, bytes, true);
                return 0;
            },
        };
        const imports = {};
        for (const { module: from, name } of WebAssembly.Module.imports(module)) {
            imports[from] ??= {};
            imports[from][name] = known[name] ?? (() => NO_SUCH_CALL);
        }
        return imports;
    }

    function start(module) {
        let exported = null;
        const view = () => new DataView(exported.memory.buffer);
        exported = new WebAssembly.Instance(module, system(module, view)).exports;
        exported._initialize();
        return exported;
    }

    /* Writes the text to the memory that `reserve` returns, calls `run`, and reads the string that it returns. */
    function call(exported, reserve, run, text) {
        const bytes = new TextEncoder().encode(text);
        const to = exported[reserve](bytes.length);
        if (!to) throw new Error("out of memory");
        new Uint8Array(exported.memory.buffer, to, bytes.length).set(bytes);
        const from = exported[run]();
        const memory = new Uint8Array(exported.memory.buffer);
        return new TextDecoder().decode(memory.subarray(from, memory.indexOf(0, from)));
    }

    function open(module) {
        let exported = start(module);
        /* After a trap nothing is known about the module's memory: the next request gets a new one. */
        function ask(reserve, run, text) {
            try {
                exported ??= start(module);
                return JSON.parse(call(exported, reserve, run, text));
            } catch (error) {
                exported = null;
                return { error: `the library stopped: ${error.message}` };
            }
        }
        return {
            ask,
            answer: text => ask("live_request", "live_answer", text),
            tensors: () => (exported ? exported.live_tensors() : 0),
            bytes: () => (exported ? exported.memory.buffer.byteLength : 0),
        };
    }

    /* The object whose answer(text) runs a request; null, and a sentence in Live.refused, if there is none. */
    async function loadOnce() {
        const source = document.getElementById("wasm"); /* a file of gzip, in base64 */
        const lack = !source ? "This page was made without the library in it, so its"
            : !globalThis.DecompressionStream ? "This browser cannot unpack the library in this page, so the" : "";
        Live.refused = lack && `${lack} numbers are recorded ones.`;
        if (lack) return null;
        try {
            const packed = Uint8Array.from(atob(source.textContent), digit => digit.charCodeAt(0));
            const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
            return open(await WebAssembly.compile(await new Response(bytes).arrayBuffer()));
        } catch (error) {
            Live.refused = `This browser refuses WebAssembly here, so the numbers are recorded ones. (${error.message})`;
            return null;
        }
    }

    /* One module for the page: all callers get the same object. */
    let loaded = null;
    const load = () => (loaded ??= loadOnce());
    return { load, refused: "" };
})();
