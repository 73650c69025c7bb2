/* time.js - what tests/page/test --time appends to a copy of a page, behind common.js: how long a change takes, from the
 * event of a control until the page is computed, drawn and laid out (milliseconds: the median of 100, and the 95th), and
 * how long the playground trains; how long it takes to plant a rule, and to step on with a wrong one. */
/* Until what an act has changed is laid out. */
function timeOf(act) {
    const start = performance.now();
    act();
    document.body.getBoundingClientRect();
    return performance.now() - start;
}

function wordsOfTimes(times) {
    const at = share => times[Math.floor(times.length * share)].toFixed(1);
    times.sort((a, b) => a - b);
    return `median ${at(0.5)} ms, 95 of 100 below ${at(0.95)} ms`;
}

async function timeHundred(act) {
    const times = [];
    for (let n = 0; n < 100; n++) {
        times.push(timeOf(() => act(n)));
        await wait();
    }
    return wordsOfTimes(times);
}

async function timeChanges(address, panel, selector, type, valueOf) {
    await go(address);
    $(`#b-${panel}`).click();
    const input = $(selector);
    return timeHundred(n => {
        input.value = String(valueOf(n));
        input.dispatchEvent(new Event(type, { bubbles: true }));
    });
}

async function timeSteps(address) {
    await go(address);
    return timeHundred(() => $(".take button").click());
}

/* A rule that is typed and planted, another one each time; and a step there and back. */
async function timeRules(address, formulaOf) {
    await go(address);
    press("w");
    const times = [], steps = [];
    for (let n = 0; n < 100; n++) {
        $("#rule-text").value = formulaOf(n);
        times.push(timeOf(() => press("Enter", $("#rule-text"))));
        await wait();
        steps.push(timeOf(() => press(n % 2 ? "ArrowLeft" : "ArrowRight")));
        await wait();
        steps.push(timeOf(() => press(n % 2 ? "ArrowRight" : "ArrowLeft")));
        await wait(120);
    }
    return { rule: wordsOfTimes(times), step: wordsOfTimes(steps) };
}

/* The slider of a nudge, and another number that is nudged: the library is asked once for it. */
async function timeNudges(address) {
    await go(address);
    const slides = [], numbers = [], { part: { tensor } } = stepNow();
    for (let n = 0; n < 100; n++) {
        numbers.push(timeOf(() => choose(`g${tensor.number}.${n % tensor.value.length}`)));
        await wait();
        $(".knob input").value = String(n % 41);
        slides.push(timeOf(() => $(".knob input").dispatchEvent(new Event("input", { bubbles: true }))));
        await wait();
    }
    return { slide: wordsOfTimes(slides), number: wordsOfTimes(numbers) };
}

/* Every step of every lesson, on and back: each is drawn twice, and counts as it is drawn faster. */
async function timeDrawing() {
    const slowest = { time: 0 }, all = [];
    for (const { name } of lessons) {
        await go(`#${name}/0`);
        state.keys = false;
        for (let n = 1; n < state.lesson.steps.length; n++) {
            const times = [n, n - 1, n].map(to => timeOf(() => goTo(to))), time = Math.min(times[0], times[2]);
            all.push(time);
            if (time > slowest.time) Object.assign(slowest, { time, at: where() });
            await wait();
        }
    }
    return `median ${all.sort((a, b) => a - b)[all.length >> 1].toFixed(1)} ms, the slowest of ${all.length} ${slowest.time.toFixed(1)} ms, at ${slowest.at}`;
}

async function timeTraining(attention) {
    await go(`#play&attention=${attention}`);
    while ($("#play-step").textContent !== "0") await wait(10);
    const start = performance.now();
    $('[data-play="goal"]').click();
    while ($("#play-step").textContent !== "1000") await wait(10);
    return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

begin(async () => {
    const rules = await timeRules("#5/b15.0", n => `y * dy * ${n + 1}`);
    const nudges = await timeNudges("#5/b15.0.3");
    report.times = {
        "a step is drawn": await timeDrawing(),
        "lesson 5, a nudge": nudges.slide, "lesson 5, another number is nudged": nudges.number,
        "lesson 5, another rule": rules.rule, "lesson 5, a step with a wrong rule": rules.step,
        "lesson 5, another seed": await timeChanges("#5/b17.1", "example", "#set-seed", "change", n => 100 + n),
        "lesson 5, a step is taken": await timeSteps("#5/sgd"),
        "playground, 1000 steps, dot": await timeTraining("dot"),
        "playground, 1000 steps, additive": await timeTraining("additive"),
    };
}).then(() => console.log("TIMES " + JSON.stringify(report)));
