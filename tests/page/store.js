/* store.js - what tests/page/test appends to a copy of a page, behind common.js: answers, rules and lines of the card, over a reload, in
 * two windows, and where a store is refused. A window that is loaded again finds in sessionStorage what stood there before. */
const questionForm = n => $(`form[aria-label="Question ${n + 1}"]`), check = form => form.querySelector("[data-check]").click();
const key = name => `tapehead ${name}`, inStore = name => new Map(JSON.parse(localStorage.getItem(key(name)) || "[]"));

/* Another window writes this, or empties the store. */
function elsewhere(name, entries) {
    if (entries) localStorage.setItem(key(name), JSON.stringify([...inStore(name), ...entries]));
    else localStorage.removeItem(key(name));
    dispatchEvent(new StorageEvent("storage", { key: key(name) }));
}

async function toQuestion(name, n) {
    await go(`#${name}/${lessons.find(each => each.name === name).questions[n].at}`);
    toRule();
    for (const fold of all("details.others")) fold.open = true;
    return questionForm(n);
}

/* Every question of the page, in turn: right, wrong, revealed. */
async function answerAll() {
    let count = 0;
    for (const { name, questions = [] } of lessons) for (const [n, question] of questions.entries()) {
        const form = await toQuestion(name, n), how = ["right", "wrong", "told"][count++ % 3], { tensors } = state.lesson.tape;
        if (!form) fail(`lesson ${name} has no question ${n}`);
        else if (how === "told") {
            check(form);
            form.querySelector("[data-reveal]").click();
        } else if (question.kind === "choice") form.querySelectorAll("input")[how === "right" ? question.answer : (question.answer + 1) % question.options.length].checked = true;
        else if (question.kind === "zeros") for (const [i, x] of tensors[question.tensor].grad.entries()) {
            if ((x === 0) === (how === "right")) state.lesson.picks.add(`g${question.tensor}.${i}`);
        } else form.querySelector("input").value = question.kind === "number" ? String(tensors[question.tensor][question.part][question.index] + (how === "right" ? 0 : 7))
            : String(termsCounted(question).reached.length + (how === "right" ? 0 : 7));
        if (form && how !== "told") check(form);
    }
}

/* What a reader sees of all questions, and at the end of each lesson. */
async function lookAll() {
    const seen = {};
    for (const { name, questions = [] } of lessons) {
        for (const n of questions.keys()) {
            const form = await toQuestion(name, n);
            seen[`${name} ${n}`] = form && [form.querySelector(".result").textContent, [...form.querySelectorAll("input")].map(input => (input.type === "text" ? input.value : input.checked)).join(), [...state.lesson.picks].sort().join(),
                $("#step .tab.main")?.textContent].join("|");
        }
        await go(`#${name}/card`);
        seen[name] = $("#end")?.textContent + all("#scrub .ask").length;
    }
    return seen;
}

async function writeRules() {
    await go("#2/b4.0&hide");
    for (let looks = 0; looks < 3 && isNudging(); looks++) setLook(LOOKS.length);
    $("#rule-text").value = "dY @ V'";
    press("Enter", $("#rule-text"));
    await go("#2/card");
    keep(state.lesson, [["card dV", "A' @ dY"]]);
    await go("#2/f4&hide");
    $("#step .tab.main .c").click();
    const { i } = $("#step .tab.main .c").dataset, guess = $("#terms .guess input");
    if (guess) guess.value = String(picture.main.numbers[i]);
    guess?.form.requestSubmit();
    if (state.hide) $("#hide").click(); /* it hides again what was shown, and shows it */
    await go("#1");
    $(".bet button").click();
}

/* Two windows: neither loses what the other one wrote, and each shows it. */
async function twoWindows() {
    await go("#2/card");
    const open = all(".open-line").length, lines = stepNow().lines.map(({ name }) => name);
    expect(open === lines.length - 1, `a line of the card is not kept: ${open} are open`);
    elsewhere("2", [["card dQ", "dS @ K"]]);
    expect(all(".open-line").length === open - 1, "what another window wrote is not shown");
    $("#rule-text").focus();
    $("#rule-text").value = "dY @ V'";
    press("Enter", $("#rule-text"));
    expect(["card dV", "card dQ", "card dA", "rule Y.dA"].every(place => inStore("2").has(place)), `two windows: the store has ${[...inStore("2").keys()]}`);
    localStorage.setItem(key("2"), JSON.stringify([...inStore("2"), ["card dK", "dS' @ Q"]])); /* no word of it arrives */
    keep(state.lesson, [["card dS", "dZ / √d"]]);
    expect(inStore("2").has("card dK") && inStore("2").has("card dS"), "a window writes over another one");
    localStorage.setItem(key("2"), "nonsense");
    comeAgain();
    expect(all(".open-line").length === lines.length, "a store that holds nonsense is not empty");
}

/* Start again says what goes, asks nothing where nothing is there, and leaves nothing. */
async function beginsAgain() {
    forgetKept();
    await go("#2/f4");
    const asked = questionForm(lessons.find(({ name }) => name === "2").questions.findIndex(({ at }) => at === "f4")), shown = () => $("#step .items").textContent + $("#questions").textContent, first = shown();
    asked.querySelector("input").value = "77";
    check(asked);
    keep(state.lesson, [["rule A", "written dY @ V'"], ["card dV", "A' @ dY"], ["card dQ", "dS"]]);
    if ($("#panel").hidden) openPanel("example");
    $("#set-seed").value = "9";
    $("#set-seed").dispatchEvent(new Event("change"));
    $("#again").click();
    expect(!Controls.isChanged() && inStore("2").size === 4, "the example is not the lesson's own, or an answer is lost with it");
    $("#again").click();
    expect($("#changed").textContent.includes("forgets 1 answer, 1 rule, 2 lines of this lesson") && inStore("2").size === 4, `start again says ${$("#changed").textContent}`);
    $("#again").click();
    expect(localStorage.getItem(key("2")) === null && shown() === first, `start again leaves ${localStorage.getItem(key("2"))}, ${shown()}`);
    $("#again").click();
    expect(!$("#changed").textContent.includes("Once more"), "start again asks where there is nothing");
    closePanel();
    const form = questionForm(state.lesson.questions.findIndex(({ at }) => at === "f4"));
    form.querySelector("input").value = "77";
    check(form);
    elsewhere("2", null);
    expect(!$(".result p") && !questionForm(state.lesson.questions.findIndex(({ at }) => at === "f4")).querySelector("input").value, "another window's start again is not seen");
}

/* Nothing is said, and what was answered stays for the visit. */
async function refusedStore() {
    const { getItem, setItem, removeItem } = Storage.prototype, refuse = () => { throw new Error("refused"); };
    for (const some of [{ getItem: refuse, setItem: refuse, removeItem: refuse }, { setItem: refuse }]) { /* a page from the disk; a private window */
        forgetKept();
        Object.assign(Storage.prototype, some);
        const form = await toQuestion("2", 0);
        form.querySelector("input").value = "77";
        check(form);
        keep(state.lesson, [["card dV", "dY"]]); /* one after the other */
        await go("#1");
        await go(`#2/${state.lesson.steps[0].id}`);
        state.lesson.forms.length = 0;
        expect((await toQuestion("2", 0)).querySelector("input").value === "77", "a refused store forgets in this visit");
        Object.assign(Storage.prototype, { getItem, setItem, removeItem });
        isStoreRefused = false;
    }
}

begin(async () => {
    if (!sessionStorage.before) {
        localStorage.clear();
        onStore({ key: null });
        await answerAll();
        await writeRules();
        sessionStorage.before = JSON.stringify(await lookAll());
        location.hash = "";
        location.reload();
        return new Promise(() => {}); /* the report is that of the next visit */
    }
    const before = JSON.parse(sessionStorage.before), now = await lookAll();
    for (const place in before) expect(before[place] === now[place], `${place}: after a reload ${now[place]}, before ${before[place]}`);
    report.kept = Object.keys(before).length;
    await go("#1");
    expect($(".bet [aria-pressed=true]"), "a bet is not kept");
    await go("#2/b4.0.2&hide");
    expect($("#rule-text").value === "dY @ V'" && $("#verdict").textContent.includes("right"), `a rule is not kept: ${$("#rule-text").value}`);
    if (state.hide) $("#hide").click();
    await twoWindows();
    await beginsAgain();
    await refusedStore();
    sessionStorage.clear();
    localStorage.clear();
});
