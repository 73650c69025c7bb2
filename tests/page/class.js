/* class.js - what tests/page/test appends to a copy of a page, behind common.js: what a teacher needs. WALK.lessons: the names
 * of the lessons whose worksheets are looked at. */

/* A number of the answers as check_cells wants it: the text of a cell, and the power of ten above its table. */
const cellText = text => {
    const [, digits, power] = /^(.*)·(10⁻.*)$/.exec(text) || [];
    return power ? [digits, "× " + power] : [text, ""];
};

/* A worksheet gives all but the result of each step, and its answers have a number for each box. */
function worksheet(number, kind) {
    printed = kind;
    drawPaper();
    const sheets = all("#paper .sheet"), answers = all("#paper .answers dd"), steps = new Set();
    expect(sheets.length > 2 && answers.length === sheets.length, `lesson ${number}, ${kind}: ${sheets.length} steps, ${answers.length} answers`);
    sheets.forEach((sheet, n) => {
        const step = `lesson ${number}, ${kind}, ${sheet.querySelector("small").textContent}`, boxes = [...sheet.querySelectorAll(".c.secret")];
        const numbers = answers[n].textContent.split(/;? +|; */);
        expect(boxes.length > 0 && boxes.every(box => box.closest(".tab.main")), `${step}: not only the result is empty`);
        expect([...sheet.querySelectorAll(".tab.main .c")].length === boxes.length, `${step}: a part of the result stands there`);
        expect(boxes.length === numbers.length, `${step}: ${boxes.length} boxes, ${numbers.length} answers`);
        steps.add(sheet.querySelector("small").textContent);
        boxes.forEach((box, i) => {
            const { shows } = box.closest(".tab").dataset;
            if (shows && numbers[i]) (report.cells[`${number} ${shows}`] ||= {})[box.dataset.i] = cellText(numbers[i]);
        });
        expect(boxes.length <= 48, `${step}: ${boxes.length} boxes`);
    });
    expect(steps.size === sheets.length && !$("#paper .algebra"), `lesson ${number}: a step twice, or lines that tell its result`);
    clearPaper();
    return steps;
}

async function worksheets(number) {
    await go(`#${number}`);
    const some = worksheet(number, "worksheet"), every = worksheet(number, "worksheet of all steps");
    expect(some.size < every.size && every.size === state.lesson.steps.filter(step => step.unit || isLoop(step)).length, `lesson ${number}: ${some.size} of ${every.size} steps`);
    const asked = (state.lesson.questions || []).map(({ at }) => phaseOf(state.lesson, stepOf(state.lesson, at)));
    for (const step of asked) expect(some.has(step), `lesson ${number}: ${step} has a question and is left out`);
}

/* In the printed lesson the questions stand before all steps, whose words and numbers answer them. */
async function printedLesson(number) {
    await go(`#${number}`);
    printed = "lesson";
    drawPaper();
    expect(!$("#paper .sheet .asked"), `lesson ${number}: a question is printed beside its answer`);
    expect(!(state.lesson.questions || []).length || $("#paper .asked"), `lesson ${number}: no question is printed`);
    const lines = shownSteps(state.lesson).map(n => state.lesson.steps[n]).filter(({ algebra }) => algebra), printedLines = all("#paper .algebra");
    expect(printedLines.length === lines.length, `lesson ${number}: ${printedLines.length} of ${lines.length} rules have their lines of algebra on paper`);
    lines.forEach(({ algebra }, n) => lookAlgebra(printedLines[n], algebra));
    clearPaper();
}

/* The panel says that a file is nobody else's, and prints what is chosen. */
function shares() {
    $("#b-share").click();
    const text = $("#panel").textContent, kinds = [], { print } = window;
    expect(/on this machine alone/.test(text) && /build\/explain --page FILE/.test(text), "it is not said that a file cannot be opened by others");
    window.print = () => kinds.push(printed);
    const press = () => all("#panel button").find(each => each.textContent === "print a worksheet").click();
    press();
    $("#all-steps").click();
    press();
    window.print = print;
    expect(kinds.join() === "worksheet,worksheet of all steps", `the worksheets are ${kinds}`);
    printed = "lesson";
    $("#b-share").click();
}

begin(async () => {
    for (const number of WALK.lessons) {
        await worksheets(number);
        await printedLesson(number);
    }
    shares();
});
