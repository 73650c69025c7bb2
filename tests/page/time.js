/* time.js - what tests/page-test --time appends to a copy of a page, behind common.js: how long a change takes, from the
 * event of a control until the page is computed, drawn and laid out. Milliseconds: the median of 100, and the 95th. */
async function timeChanges(address, selector, type, valueOf) {
    await go(address);
    const input = $(selector), times = [];
    for (let n = 0; n < 100; n++) {
        const start = performance.now();
        input.value = String(valueOf(n));
        input.dispatchEvent(new Event(type, { bubbles: true }));
        document.body.getBoundingClientRect();
        times.push(performance.now() - start);
        await wait();
    }
    times.sort((a, b) => a - b);
    return `median ${times[50].toFixed(1)} ms, 95 of 100 below ${times[95].toFixed(1)} ms`;
}

begin(async () => {
    report.times = {
        "lesson 5, another seed": await timeChanges("#lesson=5&step=20", "#set-seed", "change", n => 100 + n),
        "lesson 6, another step of SGD": await timeChanges("#lesson=6&step=4", "#set-step", "input", n => 2 * n),
    };
    console.log("TIMES " + JSON.stringify(report));
});
