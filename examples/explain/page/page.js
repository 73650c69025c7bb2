/* page.js - what the page shows: its state, the steps, and the address that leads back to it.
 *
 *     #2/b3.0/g4.3                lesson 2, the step b3.0 (plan.js), the number g4.3 (views.js)
 *     #2/b3.0.3                   the same step, its second look (nudge.js)
 *     #5/f3&heads=2&rule=softmax  with changes (controls.js)
 *     #2/f3&present               in present mode; &present=key: with the key steps alone (of a long lesson
 *                                 they are shown alone anyway, unless the address names another step)
 *     #2/b3.0&hide                answers are hidden; so do &exercise and &predict, from days when these were two
 *     #2/b2.0&try                 the experiment of the step (experiment.js)
 *     #2/card                     the card (card.js)
 *     #play&seed=3                the playground (play.js)
 *
 * Addresses that counted steps, #lesson=2&step=12&cell=g4.3 or #2/12, lead to the nearest step. */
"use strict";

/* chosen, hover: keys of numbers; asked: the key that a question hides; panel: which panel of the tables is shown; turned:
 * the step at which the reader chose the panel; hide: answers are hidden;
 * hint: the terms of a hidden number are shown;
 * moved: the step is new, so it may move; tape: is the picture of the tape shown in present mode; null: where a step leaves
 * it room; keys: only the key steps are shown; compare: two states are side by side; trying: the position of an experiment
 * (experiment.js); printing: what is drawn is for paper; look: which look at the step, from 1 on; nudge: the place of its slider. */
const state = { lesson: null, step: 0, chosen: null, hover: null, asked: null, panel: 0, hide: false, hint: false,
    moved: false, compare: false, printing: "", look: 1, nudge: FIRST_NUDGE, program: false,
    layout: null, guessed: null, turned: null, others: false, tape: null, keys: false, trying: null };

const stepNow = () => state.lesson.steps[state.step];
const isPlaying = () => !byId("playground").hidden;

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

/* A number's key stands in the address if it is one of a value or a gradient. */
const addressOf = (step, key, look = "") =>
    `#${state.lesson.name}/${step.id}${look}` + (readKey(key) ? "/" + key : "") + Controls.suffix();

const presentWord = () => (isPresenting() ? "&present" + (state.keys ? "=key" : "") : "");

function writeAddress() {
    if (isPlaying() || (Controls.isLoading() && Controls.suffix())) return; /* what it asks for is not shown yet */
    const isFirst = state.step === 0 && state.lesson === firstLesson && !Controls.suffix() && !location.hash &&
        !isPresenting() && !state.hide;
    replaceAddress(isFirst ? location.pathname + location.search
        : addressOf(stepNow(), state.chosen, lookSuffix()) + presentWord() + (state.hide && !isPresenting() ? "&hide" : "") + (isTrying() ? "&try" : ""));
}

let isNewEntry = false; /* the browser's Back leads back to this step */

function replaceAddress(address) {
    try {
        history[isNewEntry ? "pushState" : "replaceState"](null, "", address);
    } catch { /* a browser may forbid many changes in a short time; a later change then succeeds */ }
}

/* An address as {name, id, key, wanted}: the words after "&", too. */
function parseAddress(hash) {
    const [place, ...pairs] = hash.replace(/^#/, "").split("&"),
        isOld = place.includes("=") || place === "present" || (!place && pairs.length > 0);
    const wanted = new URLSearchParams(isOld ? hash.replace(/^#/, "") : pairs.join("&"));
    const [name, id, key] = isOld ? [wanted.get("lesson"), wanted.get("step"), wanted.get("cell")]
        : place.split("/").map(decoded);
    for (const word of isOld ? ["lesson", "step", "cell"] : []) wanted.delete(word);
    const [, step = id, look] = /^(b\d+\.\d+)\.(\d)$/.exec(id || "") || [];
    return { name: name || "", id: step || "", look: Number(look), key: key || null, wanted };
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; /* a % that begins no character */
    }
}

/* The number of the step that an address names. Steps were once counted: forward lines from 1, then backward. */
function stepIn(lesson, id) {
    const counted = /^\d+$/.test(id) && id !== "0" ? countedSteps(lesson) : null;
    const name = counted ? counted[Math.min(Number(id), counted.length) - 1] : id;
    unfoldFor(lesson, name);
    return Math.max(0, stepOf(lesson, name));
}

/* An address may name a step inside a group: then the group is unfolded. */
function unfoldFor(lesson, id) {
    const [, line] = /^[fba](\d+)/.exec(id) || [], isFolded = line && !lesson.steps.some(step => step.id === id);
    const group = isFolded && lesson.groups.find(({ lines }) => lines.some(each => each.line === Number(line)));
    if (!group || lesson.open.has(group.id)) return;
    lesson.open.add(group.id);
    plan(lesson);
    buildMachine();
}

/* Shows what the address says. */
function readAddress() {
    const { name, id, look, key, wanted } = parseAddress(location.hash), wasPlaying = isPlaying();
    const isPlay = name === "play" || wanted.has("play");
    byId("playground").hidden = !isPlay;
    document.body.classList.toggle("playing", isPlay);
    if (isPlay !== wasPlaying) scrollTo(0, 0);
    closePanel();
    const present = wanted.get("present");
    if (present !== null) setPresent(true);
    const isTry = wanted.has("try"), hides = ["hide", "exercise", "predict"];
    if (hides.some(word => wanted.has(word))) state.hide = true;
    for (const word of ["present", "try", ...hides]) wanted.delete(word);
    if (isPlay) return drawTabs("play");
    const found = lessons.find(each => each.name === name),
        { lesson, sentence } = Controls.read(found || firstLesson, wanted);
    const isUnknown = !found && name;
    fill(byId("notice"), isUnknown && name === RECORDED ? ["A recording is there only while the page stays open. ",
        el("a", { href: "#play" }, "Make another one in the playground.")]
        : isUnknown ? `There is no lesson ${name} in this page: it shows ${lesson.number ? "lesson " + lesson.name : "a tape"}.` : sentence);
    const before = state.lesson && stepNow(), isOther = lesson !== state.lesson, isOtherName = !state.lesson || lesson.name !== state.lesson.name;
    if (isOther || machine.lesson !== lesson) openLesson(lesson);
    if (isOtherName) {
        state.keys = (isPresenting() && state.keys) || lesson.plan.long;
        scrollTo(0, 0);
    }
    if (present !== null) state.keys = present === "key";
    const step = isUnknown ? 0 : stepIn(lesson, id);
    if (!isUnknown && step === 0 && id && id !== "0" && !sentence)
        fill(byId("notice"), `${lesson.number ? "Lesson " + lesson.name : "This tape"} has no step “${id}”: this is its start.`);
    Object.assign(state, { trying: isTry ? -1 : null, step, chosen: isUnknown || !readKey(key) ? null : key,
        hover: null, hint: false, moved: false, guessed: null });
    state.keys &&= !!stepNow().key;
    state.look = look ? lookAt(look) : firstLook();
    draw();
    if (before !== stepNow()) readFromTop();
    Controls.drawn();
}

/* ---- steps -------------------------------------------------------------------------------------------------------- */

/* Plans a lesson. If only numbers differ from the lesson before it, the same steps get room from the picture of the tape. */
function openLesson(lesson) {
    const before = state.lesson;
    if (before && before.name === lesson.name) for (const id of before.open) lesson.open.add(id);
    plan(lesson);
    restore(lesson);
    Object.assign(state, { lesson, panel: 0, guessed: null, step: Math.min(state.step, lesson.steps.length - 1) });
    const { source, command } = lesson;
    fill(byId("made"), source && ["From ", prose(source), ". "], command && ["This example is made by ", el("code", {}, command), "."]);
    machine = null; /* draw() makes another one */
    drawTabs(lesson.name);
}

function drawTabs(name) {
    for (const tab of byId("tabs").querySelectorAll("a")) {
        if (tab.dataset.name === name) tab.setAttribute("aria-current", "page");
        else tab.removeAttribute("aria-current");
    }
    byId("lessons").value = name;
}

/* The step on (1) or back (-1) from here: of the key steps if only those are wanted. */
function nextStep(by) {
    const keys = state.keys ? keySteps(state.lesson) : null, { steps } = state.lesson;
    let n = state.step + by;
    while (keys && n > 0 && n < steps.length && !keys.has(n)) n += by;
    return n;
}

function toggleKeys() {
    state.keys = !state.keys;
    drawAgain();
}

function goTo(n) {
    const to = Math.max(0, Math.min(state.lesson.steps.length - 1, n));
    if (to === state.step) return;
    leaveTry();
    const focus = document.activeElement, inStep = byId("step").contains(focus) || byId("words").contains(focus), isBack = to < state.step,
        inMachine = byId("picture").contains(focus);
    Object.assign(state, { trying: null, step: to, chosen: null, hover: null, hint: false, moved: true, guessed: null, nudge: FIRST_NUDGE });
    state.look = isBack ? Infinity : firstLook();
    isNewEntry = true;
    draw();
    isNewEntry = false;
    readFromTop();
    if (inStep) byId("step").focus({ preventScroll: true });
    if (inMachine) (byId("picture").querySelector('.node[tabindex="0"]') || byId("step")).focus({ preventScroll: true });
}

/* A new step is read from its top; on a phone the picture of the tape may stay above the window. */
function readFromTop() {
    const { offsetTop } = byId(isWide() ? "bar" : "machine"); /* on a phone the bar is below */
    if (scrollY > offsetTop && (innerWidth >= 1100 || byId("step").getBoundingClientRect().top < 0)) scrollTo(0, offsetTop);
}

/* Draws the step. */
function draw() {
    const step = stepNow();
    document.body.classList.toggle("at-cover", step.kind === "cover");
    if (!machine || machine.lesson !== state.lesson) buildMachine();
    foldTape(state.tape === false || (state.tape === null && isLowWindow() && !isPresenting()));
    drawBar();
    makeRoom();
    animateStep();
    updateMachine();
    byId("title").textContent = `${state.lesson.number ? `Lesson ${state.lesson.name}: ` : ""}${state.lesson.title || "Your tape"}`;
    announce();
    writeAddress();
}

/* A step is read out as it is seen: its rule, the number that is worked out, its words. */
function announce() {
    const { lesson, step } = state, said = [...document.querySelectorAll("#step :is(h1, h2, .lead), #door h2, #terms, #words > .text")]
        .filter(each => each.id !== "terms" || !isHiding()).map(each => each.innerText.trim().replace(/\s+/g, " ")), 
        text = [countOf(lesson, step), ...said, isNudging() && looksOf(stepNow())[lookNow() - 1]].filter(Boolean).join(". ");
    if (byId("announce").textContent !== text) byId("announce").textContent = text;
}

/* In present mode the picture of the tape folds, if a step does not fit under it. */
function makeRoom() {
    const drawAll = isWhole => {
        drawStep();
        drawWords();
        return settle(isWhole);
    };
    if (drawAll(isPresenting() && state.tape === null) > 0 && isPresenting() && state.tape === null) {
        foldTape(true);
        drawAll();
    }
}

/* On a low projector the picture of the tape gives its place to a step that needs it, in a window that is very low, as one that
 * is enlarged, to every step; a button and a key bring it back. */
function foldTape(isFolded) {
    const tapeless = isFolded && canFold();
    document.body.classList.toggle("tapeless", tapeless);
    byId("tape").setAttribute("aria-pressed", String(!tapeless));
}

function toggleTape() {
    state.tape = document.body.classList.contains("tapeless");
    drawAgain();
}

/* The same step once more; the focus stays where it was. */
function drawAgain() {
    const focus = document.activeElement, { key, keep } = focus.dataset || {}, inStep = byId("step").contains(focus);
    draw();
    const same = keep && byId("step").querySelector(`[data-keep="${keep}"]`);
    if (focus.isConnected) focus.focus({ preventScroll: true });
    else if (inStep) (same || cellAt(key) || byId("step")).focus({ preventScroll: true });
}

/* The bar: a dash for each step, with a mark where a question waits. A click on it leads to the nearest step. */
function drawBar() {
    const { lesson, step } = state, bar = byId("scrub"), asks = new Set(), some = keySteps(lesson).size, all = lesson.steps.length;
    (lesson.questions || []).forEach(({ at }, n) => lesson.right.has(n) || asks.add(stepOf(lesson, at)));
    if (state.hide) lesson.steps.forEach((each, m) => isRuleHidden(each) && asks.add(m));
    fill(bar, lesson.steps.map(({ key }, n) => el("i", { class: [n > lesson.forward ? "b" : n ? "f" : "o", n === step ? "on"
        : n < step && "past", lesson.steps[n].check === "wrong" ? "bad" : asks.has(n) && "ask", state.keys && !key && "beside"].filter(Boolean).join(" ") })));
    byId("count").textContent = countOf(lesson, step);
    byId("count").title = state.keys ? `${some} of the ${all} steps are new, or have a question` : "";
    byId("back").disabled = step === 0;
    byId("next").disabled = step === lesson.steps.length - 1 && !lesson.number;
    byId("hide").setAttribute("aria-pressed", String(state.hide));
    byId("skip").setAttribute("aria-pressed", String(state.keys));
    byId("skip").hidden = some === all;
}

function stepInBar(x) {
    const far = dash => Math.abs(dash.getBoundingClientRect().x + dash.offsetWidth / 2 - x),
        dashes = [...byId("scrub").children];
    return dashes.indexOf(dashes.reduce((a, b) => (far(b) < far(a) ? b : a)));
}

function choose(key) {
    Object.assign(state, { chosen: key, hover: null, hint: false });
    const hasRows = picture && picture.row !== undefined;
    if (hasRows || isNudging()) drawStep();
    else showTerms();
    if (isNudging()) settle();
    writeAddress();
}

/* ---- other numbers, and recordings -------------------------------------------------------------------------------- */

/* Shows the same lesson with other numbers, at the same step if it has one. */
function showLesson(lesson) {
    const { steps } = state.lesson, step = stepNow(), key = readKey(state.chosen), id = step.id,
        isLast = state.step === steps.length - 1;
    const like = other => step.unit && other.kind === step.kind && resultOf(other).title === resultOf(step).title &&
        (!step.unit || other.unit.result.title === step.unit.result.title);
    const at = state.step;
    openLesson(lesson);
    const found = lesson.steps.findIndex(like), named = stepOf(lesson, id), last = lesson.steps.length - 1;
    state.step = found >= 0 ? found : isLast && step.unit ? last : named >= 0 ? named : Math.min(at, last);
    const now = readKey(state.chosen);
    if (key && (!now || now.t.title !== key.t.title)) state.chosen = null;
    state.moved = false;
    drawAgain();
    Controls.drawn();
}

const RECORDED = "recall";

/* Shows a lesson that was recorded while the page is open, in place of the one before it. back: a link on its cover; at:
 * the number of the tensor whose step is shown first. */
function showRecording(recording, back, at) {
    const lesson = prepare({ ...recording, name: RECORDED, back }),
        former = lessons.findIndex(({ name }) => name === RECORDED);
    lessons.splice(former < 0 ? lessons.length : former, 1, lesson);
    drawMenu();
    plan(lesson);
    const t = lesson.tape.tensors[at ?? -1],
        step = t && lesson.steps[t.gradStep < Infinity ? t.gradStep : Math.max(1, t.valueStep)];
    location.hash = RECORDED + (step ? "/" + step.id : "");
}

/* The lessons side by side; on a phone as one choice, which then lets the arrows go. */
const drawMenu = () => fill(byId("tabs"), lessons.map(({ number, name, title }) =>
    el("a", { href: "#" + name, "data-name": name, title, "aria-label": number && `${name}: ${title}` },
        number ? el("b", {}, name) : "", el("span", {}, title || "Your tape"))),
    el("a", { href: "#play", "data-name": "play", class: "playtab" }, "Playground"),
    el("select", { id: "lessons", "aria-label": "Lesson", onchange: ({ target }) => {
        location.hash = target.value;
        target.blur();
    } }, lessons.map(({ number, name, title = "Your tape" }) => new Option(number ? `${name}: ${title}` : title, name)), new Option("Playground", "play")));

/* ---- the beginning ------------------------------------------------------------------------------------------------ */

/* The lesson's own words for steps give way to the steps of the page, which have the same name. */
const prepare = ({ steps, ...lesson }) => connect({ ...lesson, notes: new Map((steps || []).map(({ at, text }) => [at, text])) });

const data = JSON.parse(byId("data").textContent), sources = data.sources || [], lessons = data.lessons.map(prepare);

/* The page opens with the lesson that can be pulled. */
const firstLesson = lessons.find(({ pull }) => pull) || lessons[0];

function watchStep(box) {
    /* A click chooses a number and leaves the focus, so that the arrows go on stepping. */
    box.addEventListener("mousedown", event => event.target.closest(".c") && event.preventDefault());
    box.addEventListener("click", event => {
        const cell = event.target.closest(".c");
        if (cell && canPick(cell)) togglePick(cell);
        else if (cell) choose(cell.dataset.key === state.chosen ? null : cell.dataset.key);
    });
    const hover = key => {
        if (state.hover === key || byId("terms")?.contains(document.activeElement)) return;
        state.hover = key;
        showTerms();
    };
    box.addEventListener("mouseover", event => {
        const cell = event.target.closest(".c");
        if (cell && !matchMedia("(hover: none)").matches) hover(cell.dataset.key);
    });
    box.addEventListener("mouseleave", () => state.hover && hover(null));
}

/* Another width or colours: the pictures are made anew, and the reader's answers stay. */
function rebuild() {
    if (isPlaying() || !state.lesson) return;
    buildMachine();
    drawAgain();
}

function begin() {
    let timer = 0, width = innerWidth;
    drawMenu();
    const press = { back: stepBack, next: stepOn, scrub: event => goTo(stepInBar(event.clientX)),
        hide: toggleHide, tape: toggleTape, skip: toggleKeys };
    for (const [id, act] of Object.entries(press)) byId(id).addEventListener("click", act);
    byId("scrub").addEventListener("mousemove", event =>
        (byId("scrub").title = phaseOf(state.lesson, stepInBar(event.clientX))));
    beginDoor();
    watchStep(byId("step"));
    beginPanels();
    addEventListener("keydown", onKey);
    addEventListener("pointerup", letGo);
    addEventListener("hashchange", readAddress);
    addEventListener("storage", onStore);
    addEventListener("resize", () => {
        const isKeyboard = innerWidth === width && !!needsKeys(document.activeElement); /* of a phone: it opens for a field */
        width = innerWidth;
        clearTimeout(timer);
        if (!isKeyboard) timer = setTimeout(rebuild, 80);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
    addEventListener("beforeprint", drawPaper);
    addEventListener("afterprint", clearPaper);
    readAddress();
    Controls.begin();
}

begin();
