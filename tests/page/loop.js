/* loop.js - the training loop of lesson 6, pressed line by line: what the page shows is what the library answers, a line that
 * fails changes nothing, and without the library the lines that the page was made with can be pressed. */

const lesson6 = () => lessons.find(({ name }) => name === "6");

/* The tables and the sentence are those of this state. */
function expectState({ leaves, says }, what) {
    const { lesson } = state, { value, grad } = leaves.find(({ tensor }) => tensor === lesson.loop.leaf);
    const shown = all("#step .tab").map(tab => [...tab.querySelectorAll(".c")].map(cell => cell.textContent));
    [value, grad].forEach((numbers, n) => {
        const { format } = viewOf(lesson.tape.tensors[lesson.loop.leaf], n ? "g" : "v", { numbers: numbers.map(Number) });
        expect(shown[n]?.join() === numbers.map(x => fix(Number(x), format)).join(), `${what}: ${n ? "grad" : "W"} is ${shown[n]}`);
    });
    expect(!says || $("#loop-said").textContent === el("p", {}, prose(says)).textContent, `${what}: it says ${$("#loop-said").textContent}`);
    lookWide();
    lookFit();
}

async function pressed(presses) {
    const { pressed: before = "" } = state.lesson, { states } = live ? live.answer(Controls.requestOf({ loop: before + presses })) : lesson6().loop;
    for (const [n, line] of [...presses].entries()) {
        $(`[data-press=${line}]`).click();
        expect(document.activeElement === $(`[data-press=${line}]`), `${presses}: ${line} loses the focus`);
        expectState(states[before.length + n + 1], `after ${before}${presses.slice(0, n + 1)}`);
    }
}

let live = null;

begin(async () => {
    live = await Live.load();
    await go("#6/twice");
    const { losses, loop: { states, unzeroed, course } } = state.lesson, second = state.lesson.tape.tensors.map(({ grad }) => grad);
    expectState(states[0], "at first");
    const isTwice = (x, y) => Math.abs(x - 2 * y) <= 1e-14 * Math.abs(x); /* a page has 15 digits; test_loop.c compares the bits */
    expect(states[1].leaves.every(({ tensor, grad }) => grad.every((x, i) => isTwice(x, second[tensor][i]))), "two backwards are not twice one");
    expect([losses[20], unzeroed[20]].every(x => course.includes(bare(Number(x)))), `the course is ${course}`);
    expect(all("#step .losses polyline").length === 2, "two curves are not there");
    await pressed("b");
    expect($("#step .tab.main figcaption").textContent.includes("2 × "), "the gradient does not say how often backward ran");
    await pressed(WALK.refused ? "sz" : "zfbs");
    const before = $("#step").textContent, last = WALK.refused ? "f" : "b"; /* a tape of old numbers; a line that was not recorded */
    $(`[data-press=${last}]`).click();
    expect($("#loop-said").textContent.includes(WALK.refused || "has written over it"), `a line that cannot run says ${$("#loop-said").textContent}`);
    drawAgain();
    expect($("#step").textContent === before, "a line that fails changes the numbers");
    press("ArrowRight");
    press("ArrowLeft");
    expect($("#step").textContent === before && where() === "#6/twice", "the loop does not stay as it was left");
    if (live) await pressed("zf");
    report.states = (live ? live.answer(Controls.requestOf({ loop: "bzfbs" })) : lesson6().loop).states.length;
});
