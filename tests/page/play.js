/* play.js - what tests/page/test appends to a copy of a page, behind common.js, to walk through its playground, as
 * walk.js walks through its lessons. It compares what the page shows with what the library in the page answers when it
 * is asked directly. WALK.refused: there is nothing to play with; WALK.gone: the address was of a recording; WALK.opened:
 * the page was opened at this step by this address; WALK.all: everything, not only what depends on the width. */
const expectHere = (right, text) => expect(right, `${where()}: ${text}`);
const click = name => $(`[data-play="${name}"]`).click();
const stepShown = () => Number($("#play-step").textContent);
const isTraining = () => $('[data-play="train"]').textContent === "Pause";
const isShown = element => element.getClientRects().length > 0;
const said = () => $("#play-said").textContent;

async function until(condition, what) {
    const begun = performance.now(); /* Chromium's clock runs ahead, Firefox's does not */
    for (let n = 0; n < 100000 && performance.now() < begun + 100000; n++) {
        if (condition()) return;
        await wait();
    }
    throw new Error(`${location.hash}: it never came: ${what}`);
}

/* Goes there, and waits until the playground stands still at this step. */
async function play(hash, step) {
    location.hash = hash;
    await wait();
    await until(() => isShown($("#play-on")) && stepShown() === step && !isTraining(), `${hash}, step ${step}`);
    check();
}

async function choose(name, value) {
    const field = $(`#play-settings [name="${name}"]`);
    if (field.type === "checkbox") field.checked = value;
    else field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
    await wait();
}

/* All that the playground shows, in full. */
const seen = () => JSON.stringify([stepShown(), $("#play-loss").title, $("#play-accuracy").textContent,
    $("#play-found").textContent, $("#play-curve polyline").getAttribute("points"),
    all("#play-map td[title]").map(td => td.title), all("#play-bars tr").map(row => row.textContent)]);

/* What is true of whatever it shows. */
function check() {
    const page = document.documentElement;
    if (page.scrollWidth > innerWidth) report.wide.push(`${location.hash}: ${page.scrollWidth} > ${innerWidth}`);
    if (!isTraining()) expectHere(isShown($("#machine")) && all(".node.known").length > 5, "the tape is not on top");
    for (const td of all("#play-map td[title]")) {
        const [, query, key, words] = /^(.)\? to (.):\d+: (.*)$/.exec(td.title);
        const weight = parseFloat(words), isRight = words.endsWith(", the right pair");
        expectHere(td.textContent === (words.includes("masked") ? "0" : weight.toFixed(2)),
            `${td.title} is shown as ${td.textContent}`);
        expectHere(td.classList.contains("masked") === words.includes("masked"), td.title + ": hatched or not");
        expectHere(td.classList.contains("answer") === isRight, td.title + ": outlined or not");
        if (isRight) expectHere(query === key, td.title + ": that is another letter");
        expectHere(td.scrollWidth <= td.clientWidth + 1 && td.getBoundingClientRect().right <= innerWidth,
            td.title + " does not fit");
    }
    checkBars($('#play-map [aria-pressed="true"]').textContent, all("#play-bars tr"));
    checkCurve();
    const below = all("#play-settings, #play-buttons, #play-curve").map(each => each.getBoundingClientRect().bottom + scrollY);
    if (innerWidth >= 1100) expectHere(Math.max(...below) <= innerHeight, `the controls and the curve end at ${Math.max(...below).toFixed(0)}`);
    for (const node of all(".node .name")) expectHere(!node.textContent.includes("%"), node.textContent + " is no name");
    for (const control of all("#playground button, #playground input, #playground select"))
        expectHere(control.tabIndex === 0 && (control.textContent.trim() || control.closest("label")),
            `${control.outerHTML}: no keys reach it, or it has no name`);
}

/* The weights of one question: as numbers, as bars, in words. */
function checkBars(chosen, bars) {
    const weights = bars.map(row => Number(row.querySelector(".figure").title)), largest = Math.max(...weights);
    const widths = bars.map(row => row.querySelector("i").getBoundingClientRect().width);
    const widest = widths[weights.indexOf(largest)], sum = weights.reduce((a, b) => a + b);
    expectHere($("#play-bars h3").textContent === `Question ${chosen}`, "the weights are those of another question");
    expectHere(Math.abs(sum - 1) < 1e-6, `the weights of ${chosen} sum to ${sum}`);
    bars.forEach(({ textContent: text }, j) => {
        const isRight = text.startsWith(chosen[0]) && j < all("#play-map button").length;
        expectHere(Math.abs(widths[j] - widest * weights[j] / largest) < 1, `${text}: the bar has another length`);
        expectHere(isRight === text.includes("the right pair"), text + ": right or not");
        expectHere((weights[j] === largest) === /found|largest/.test(text), text + ": largest or not");
    });
}

function checkCurve() {
    const points = $("#play-curve polyline").getAttribute("points").split(" ").filter(Boolean).map(parseFloat);
    const step = stepShown(), words = $("#play-curve svg").getAttribute("aria-label");
    const wanted = step && Math.ceil(step / Math.ceil(step / 400));
    expectHere(points.length === wanted, `the curve has ${points.length} points and not ${wanted}`);
    expectHere(points.every((x, n) => n === 0 || x > points[n - 1]), "the curve does not go to the right");
    expectHere(words.includes(step ? `at step ${step}` : "no step"), "the curve has no words");
}

/* The page in chunks against the library in one. */
async function sameNumbers() {
    await play("#play&seed=3&step=200", 200);
    const first = seen(), title = $("#play-loss").title;
    click("again");
    expectHere(stepShown() === 0 && location.hash === "#play&seed=3", "it does not start again");
    const singles = [];
    for (let n = 0; n < 5; n++) {
        click("one");
        singles.push($("#play-loss").title);
    }
    check();
    expectHere(stepShown() === 5 && location.hash === "#play&seed=3&step=5", "five single steps are not five");
    await play("#play&seed=3&step=200", 200);
    expectHere(seen() === first, "200 steps after a new start show something else than before");
    await play("#play&seed=4&step=200", 200);
    expectHere(seen() !== first, "another seed shows the same");
    await play("#play&seed=3&step=200", 200);
    expectHere(seen() === first, "the same address shows something else later");
    const live = await Live.load();
    live.answer("play begin\nattention dot\nseed 3");
    const { losses, map, accuracy } = live.answer("play train 200");
    expectHere(String(losses[199]) === title, `the library's loss is ${losses[199]}`);
    expectHere(String(losses.slice(0, 5)) === String(singles),
        `the library's first losses are ${losses.slice(0, 5)}, and not ${singles}`);
    const weights = map.weights.filter(weight => weight !== null);
    const shown = all("#play-map td[title]").filter(td => !td.classList.contains("masked"));
    expectHere(String(shown.map(td => String(parseFloat(td.title.split(": ")[1])))) === String(weights),
        "the library's weights are others");
    expectHere($("#play-accuracy").textContent === (100 * accuracy).toFixed(1) + " %",
        "the library's accuracy is another");
    click("again");
}

async function learns(attention) {
    await play(`#play&attention=${attention}`, 0);
    click("one");
    const first = Number($("#play-loss").title);
    await play(`#play&attention=${attention}&step=300`, 300);
    report.learned[attention] = [first, Number($("#play-loss").title)];
    expectHere(parseFloat($("#play-accuracy").textContent) > 90, "fewer than 90 % of the answers are right");
}

/* Train, pause; a reader who leaves comes back to the same step. A screen reader hears when it begins and ends. */
async function pauses() {
    let told = 0;
    const watch = new MutationObserver(() => told++);
    for (const place of all("#playground [role=status], #playground [aria-live], #announce"))
        watch.observe(place, { childList: true, characterData: true, subtree: true });
    await play("#play&seed=5", 0);
    await wait();
    told = 0;
    const begun = performance.now();
    click("train");
    await until(() => stepShown() > 9, "ten steps of training");
    expectHere(performance.now() - begun > 800 && stepShown() < 20, "the first steps are too fast to be seen");
    await until(() => stepShown() > 100, "100 steps of training");
    expectHere(isTraining() && !location.hash.includes("step"), "it does not train");
    click("train");
    await wait();
    expectHere(told <= 2, `${told} messages to a screen reader`);
    watch.disconnect();
    const step = stepShown();
    for (let n = 0; n < 100; n++) await wait();
    expectHere(stepShown() === step && !isTraining() && said().includes(`Step ${step}`), "it does not pause");
    expectHere(location.hash === `#play&seed=5&step=${step}`, "the address does not say the step");
    click("train");
    await until(() => stepShown() > step, "more training");
    location.hash = "#1";
    await wait();
    await wait();
    expectHere(!isShown($("#playground")) && isShown($("#step")), "the lesson is not shown");
    const left = stepShown();
    for (let n = 0; n < 100; n++) await wait();
    press("ArrowRight");
    expectHere(location.hash.startsWith("#1/f0"), "the keys of the lesson do nothing");
    await play("#play", left);
    expectHere(location.hash === `#play&seed=5&step=${left}`, "what is there is not continued");
    const hash = location.hash;
    for (const key of ["ArrowRight", "ArrowLeft", "Home", "End", "g", "Escape"]) press(key);
    expectHere(location.hash === hash && isShown($("#playground")), "a key of the lessons leaves the playground");
    press("?");
    expectHere($("#help").open, "? opens no help");
    $("#help").close();
}

async function goal() {
    await play("#play&pairs=3&step=985", 985);
    $('[data-play="goal"]').focus();
    click("goal");
    await until(() => stepShown() === 1000 && !isTraining(), "step 1000");
    expectHere($('[data-play="goal"]').disabled && document.activeElement === $('[data-play="train"]'),
        "the button at its goal keeps the focus");
    check();
    const linear = $("#play-curve svg").textContent;
    $("#play-log").click();
    expectHere($("#play-curve svg").textContent !== linear && $("#play-curve svg").textContent.includes("0.1"),
        "the logarithmic scale is as the other");
    check();
    $("#play-log").click();
}

async function settings() {
    await play("#play", 1000);
    await choose("attention", "additive");
    expectHere(location.hash.includes("attention=additive") && stepShown() === 0 && $('[name="no-scale"]').disabled,
        "attention does not change");
    await choose("attention", "dot");
    await choose("no-mask", false);
    await choose("no-scale", false);
    expectHere(/no-scale=1&no-mask=1/.test(location.hash) && !$("#playground .masked"), "the boxes change nothing");
    expectHere(!$("#play-map").textContent.includes("hatched"), "the map tells of a mask");
    click("one");
    check();
    await choose("seed", "x");
    expectHere($("#play-said.wrong") && said().startsWith('Seed is "x": it must be'), "a wrong seed is not said");
    expectHere(stepShown() === 1 && isShown($("#play-results")) && $('#play-settings [name="seed"]').value === "1",
        "a wrong seed changes the run");
    check();
    await choose("seed", "3");
    expectHere(!$("#play-said.wrong") && stepShown() === 0 && location.hash.includes("seed=3"), "a right seed does not help");
    await choose("lr", "fast");
    expectHere(said().startsWith('Learning rate is "fast"'), "a wrong learning rate is not said");
    await choose("lr", "1000000");
    click("goal");
    await until(() => said().includes("the loss is not a finite number"), "a loss that is not finite");
    expectHere($('[data-play="record"]').disabled && !isShown($("#play-results")), "what is not there can be recorded");
    location.hash = "#play&seed=1&step=many";
    await until(() => said().includes('Step is "many"'), "a wrong step");
    await choose("lr", "0,2");
    expectHere(location.hash === "#play", "a comma is no point");
}

/* A presentation of it can be left, by the key and by the button. */
async function presents() {
    for (const leave of [() => press("Escape"), () => $("#exit").click()]) {
        await play("#play&present", 0);
        expectHere(isPresenting() && isShown($("#exit")) && isShown($("#b-help")), "a presentation has no way out");
        leave();
        expectHere(!isPresenting() && isShown($("#playground")), "the presentation does not end");
    }
    state.hide = false; /* a presentation hides answers */
}

/* The text of every cell of every step of the recording, as walk.js reads them; the badges. */
async function records(hash) {
    await play(hash, 30);
    const before = seen(), options = all("#tabs a").length;
    report.recording = (await Live.load()).answer("play record").lessons[0];
    click("record");
    await wait();
    await wait();
    expectHere(location.hash === "#recall/0" && isShown($("#step")) && !isShown($("#playground")),
        "the recording is not shown");
    expectHere($(".cover .above, .cover h1").matches("h1") && !/^[0-9]/.test($(".cover").textContent), `over the recording stands ${$(".cover").textContent.slice(0, 20)}`);
    if (state.keys) press("k"); /* all steps */
    expectHere($("#tabs [aria-current]").textContent.includes("step 30"), "the tabs do not say what is shown");
    for (let last = ""; last !== location.hash; press("ArrowRight")) {
        last = location.hash;
        settleMotion();
        lookWide();
        lookFit(true);
        for (const tab of all("#step .tab")) if (tab.dataset.shows) for (const cell of tab.querySelectorAll(".c"))
            ((report.cells["recall " + tab.dataset.shows] ||= {})[cell.dataset.i] = [cell.textContent, tab.querySelector(".ten")?.textContent || ""]);
        for (const tick of all("#door .tick")) report.checks.push([tick.classList.contains("right"), tick.title]);
        for (const button of all(".heads:not(.looks) button").slice(1)) button.click();
    }
    const cells = all("#step .tab.main .c");
    cells[cells.length - 1].click();
    const link = location.hash, stage = $("#step").textContent;
    expectHere(/^#recall\/[ab]\d+\.\d+\/g/.test(link), "no cell is chosen");
    location.hash = "#1";
    await wait();
    await wait();
    location.hash = link;
    await wait();
    await wait();
    expectHere($("#step").textContent === stage && $(".chosen"),
        "the address of a number of the recording does not lead back");
    $("#end a").click();
    await wait();
    await until(() => isShown($("#playground")), "the way back");
    await wait();
    expectHere(seen() === before && location.hash === hash, "it does not continue where it was");
    click("one");
    const next = seen();
    click("record");
    await wait();
    await wait();
    expectHere(all("#tabs a").length === options + 1, "the second recording does not replace the first");
    $(".cover a").click();
    await until(() => isShown($("#playground")), "the way back again");
    click("again");
    await play(hash.replace("step=30", "step=31"), 31);
    expectHere(seen() === next, "a recording changes what comes after it");
}

async function refused() {
    $(".playtab").click();
    await until(() => /^The playground is off/.test($("#play-off").textContent), "a sentence");
    report.said = $("#play-off").textContent;
    expectHere(isShown($("#playground")) && !all("#playground button, #playground input, #playground select").some(isShown),
        "there are controls without use");
    if (document.documentElement.scrollWidth > innerWidth) report.wide.push("#play");
    location.hash = "#1";
    await wait();
    await wait();
    expectHere(!isShown($("#playground")) && isShown($("#step")), "the lesson is not shown");
}

begin(async () => {
    Object.assign(report, { said: "", learned: {} });
    if (WALK.refused) {
        await refused();
    } else if (WALK.gone) {
        expectHere($("#notice").textContent.includes("A recording is there only while the page stays open"),
            "nothing is said of the recording");
        $("#notice a").click();
        await wait();
        await until(() => isShown($("#playground")) && stepShown() === 0, "the playground");
    } else if (WALK.opened) {
        const { step, address } = WALK.opened;
        await until(() => isShown($("#play-on")) && stepShown() === step && !isTraining(), "the step of the address");
        check();
        expectHere(location.hash === address && !isShown($("#step")), "the address changed");
        await go("#2");
        expectHere(isShown($("#step")), "the first lesson is not there");
    } else {
        $(".playtab").click();
        await play("#play", 0);
        await play("#play&pairs=26&step=2", 2);
        all("#play-map [data-question]")[7].click();
        check();
        await play("#play&pairs=1&step=2", 2);
        await play("#play&attention=additive&no-mask=1&step=9", 9);
        await presents();
        if (WALK.all) {
            await sameNumbers();
            await learns("dot");
            await learns("additive");
            await pauses();
            await goal();
            await settings();
        }
        await records(WALK.all ? "#play&attention=additive&pairs=6&step=30" : "#play&step=30");
    }
});
