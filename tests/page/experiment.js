/* experiment.js - what tests/page/test appends to a copy of a page, behind common.js: it opens each experiment of the lessons by
 * its button, by a link and by keys, moves its slider, and compares the table with the data. */
const written10 = text => text.replace(/−/g, "-").replace(/^(\d)·10⁻(.*)$/, "$1e-$2").replace(/^10⁻(.*)$/, "1e-$1")
    .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, c => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).replace(/e-(\d)$/, "e-0$1");
const button = () => $("#words .try"), slider = () => $("#try-at");

function lookAt({ rows, columns, kinds, positions, algebra = [] }, n) {
    slider().value = String(n);
    slider().dispatchEvent(new Event("input"));
    const cells = all(".tried tbody td"), { label, cells: wanted } = positions[n];
    expect(written10($("#step output").textContent) === label, `${where()}: the slider is at ${$("#step output").textContent}, not ${label}`);
    expect(cells.map(cell => written10(cell.textContent)).join() === wanted.join(), `${where()}, ${label}: the table has other numbers`);
    cells.forEach((cell, i) => expect(kinds[i % columns.length] !== "s" || !wanted[i] || Math.abs(Number(cell.style.getPropertyValue("--share")) - (Number(wanted[i]) || 0)) < 0.001,
        `${where()}, ${label}: ${wanted[i]} has another bar`));
    const said = positions.slice(0, n + 1).map(({ says }) => says).filter(Boolean).pop();
    const end = $("#step > .text, #step > .algebra");
    if (algebra.length) lookAlgebra(end, algebra);
    else expect(end.textContent === el("p", {}, prose(said)).textContent, `${where()}, ${label}: it says ${end.textContent}`);
    expect(all(".tried tbody th").length === rows.length, `${where()}: it has other rows`);
    expect(!/infinity/.test($("#step").textContent), `${where()}: -infinity is not set as a formula is`);
    lookWide();
    for (const each of all("#step > *, #words > *")) if (each.getBoundingClientRect().right > innerWidth + 1) report.wide.push(`${where()}: ${each.className} is too wide`);
    const { bottom } = end.getBoundingClientRect();
    expect(innerWidth < 1100 || bottom + scrollY <= innerHeight, `${where()}, ${label}: it ends at ${(bottom + scrollY).toFixed(0)} of ${innerHeight}`);
}

async function tryOne(name, experiment) {
    const link = `#${name}/${experiment.at}`, { positions, start } = experiment;
    await go(link);
    const at = state.step;
    expect(button()?.textContent.startsWith("Try it: "), link + " has no experiment");
    button().click();
    expect(document.activeElement === slider() && where().endsWith("&try"), where() + ": the slider has no focus, or the address no word");
    expect(Number(slider().value) === start, where() + ": the slider begins elsewhere");
    for (let n = 0; n < positions.length; n++) lookAt(experiment, n);
    press("ArrowRight", slider());
    expect(state.step === at, where() + ": an arrow on the slider makes a step");
    history.back();
    for (let n = 0; n < 300 && slider(); n++) await wait(10);
    expect(!slider() && state.step === at && $("#step .items"), where() + ": Back does not lead back to the step");
    button().click();
    press("Escape", slider());
    expect(!slider() && $("#step .items") && document.activeElement === button(), where() + ": Esc does not lead back to the step");
    await go(link + "&try");
    expect(slider() && where() === link.replace(experiment.at, stepNow().id) + "&try", link + "&try does not open it");
    press("ArrowLeft");
    expect(state.step === shownSteps(state.lesson).findLast(n => n < at) && !slider(), where() + ": it is open at another step");
    await go(link);
    press("h");
    expect(!button(), where() + ": an experiment tells what is hidden");
    await go(link + "&try");
    expect(!slider(), where() + ": a link to an experiment tells what is hidden");
    press("h");
    report.experiments = (report.experiments || 0) + 1;
    if (innerWidth < 1100) return;
    await go(link + "&present");
    if (state.hide) toggleHide();
    button().click();
    lookAt(experiment, positions.length - 1);
    $("#exit").click();
}

begin(async () => {
    for (const { number, part = "", experiments = [] } of WALK.lessons)
        for (const experiment of experiments) await tryOne(`${number}${part}`, experiment);
});
