/* controls.js - what a reader changes in a lesson: a setting, a number in a cell of a leaf, a rule of backward. The
 * library in this page (live.js) then computes the lesson anew, and page.js shows its answer like a recorded one.
 *
 * Each change stands in the address, "#lesson=5&step=30&heads=2&rule=softmax&set=3,0.5,W_q" (element 3 of W_q becomes
 * 0.5), so a link shows the same numbers to others. Without changes the recorded lesson is shown. */
"use strict";

const Controls = (() => {
    const words = { step: "steps of SGD", causal: "causal mask", "no-scale": "scale", "no-mask": "mask",
        additive: "additive attention" };
    /* "no-scale" is a box that is checked where there is a scale. */
    const isInverted = key => key.startsWith("no-");
    /* In an address "step" is the step of the page. */
    const inAddress = { step: "sgd" };

    let library = null; /* what Live.load gave */
    let loading = true;
    let recorded = null; /* the lesson of the page that the changes belong to */
    let changes = new Map(); /* key -> text: "heads" -> "2", "rule" -> "softmax", "set 3 W_q" -> "0.5" */
    let answer = { request: "", lesson: null }; /* the last one */
    let rightLesson = null; /* where a rule is wrong: the lesson with the right one */
    let inputs = new Map(); /* key -> the control */
    let expanded = false; /* on a narrow page, where the controls are folded */

    /* ---- requests and addresses ---------------------------------------------------------------------------------- */

    const textOf = value => (value === true ? "1" : value === false ? "0" : String(value));
    const settingOf = key => recorded.settings.find(setting => setting.key === key);
    const ownValue = key => (key === "rule" ? recorded.rule || "" : textOf(settingOf(key).value));
    const valueNow = key => changes.get(key) ?? ownValue(key);
    const isEdit = key => key.startsWith("set ");
    const editKey = (t, i) => `set ${i} ${t.name}`;
    const readEdit = key => /^set (\d+) (.*)$/.exec(key).slice(1);

    /* What the recorded lesson was given: the flags in "build/explain --lesson 5 --heads 2 --causal". */
    function givenTo({ command }) {
        const given = new Map();
        for (const [, flag, value] of command.matchAll(/--(\S+)(?: (?!--)(\S+))?/g))
            given.set(flag === "break" ? "rule" : flag, value ?? "1");
        return given;
    }

    /* See live.h. Where a rule is wrong, the losses of a training by each rule are wanted, too. */
    function requestOf(withRule) {
        const settings = new Map([...givenTo(recorded), ...[...changes].filter(([key]) => !isEdit(key))]);
        if (!withRule) settings.delete("rule");
        if (settings.get("rule")) settings.set("train", "1");
        const edits = [...changes].filter(([key]) => isEdit(key)).map(([key, value]) => {
            const [index, name] = readEdit(key);
            return `set ${index} ${value} ${name}`;
        });
        return [...[...settings].map(([key, value]) => `${key} ${value}`), ...edits].join("\n");
    }

    /* "&heads=2&set=3,0.5,W_q" */
    const suffix = () => [...changes].map(([key, value]) => {
        const [index, name] = isEdit(key) ? readEdit(key) : [];
        return isEdit(key) ? `&set=${index},${encodeURIComponent(value)},${encodeURIComponent(name)}`
            : `&${inAddress[key] || key}=${encodeURIComponent(value)}`;
    }).join("");

    /* A newline would begin another setting of the request. */
    const oneLine = text => text.replace(/\s/g, " ");

    /* The changes that an address asks for. */
    function changesIn(wanted) {
        const found = new Map();
        for (const key of [...recorded.settings.map(setting => setting.key), "rule"]) {
            const value = wanted.get(inAddress[key] || key);
            if (value !== null && value !== ownValue(key)) found.set(key, oneLine(value));
        }
        for (const edit of wanted.getAll("set")) {
            const [, index, value, name] = /^(\d+),([^,]+),(.+)$/.exec(edit) || [];
            if (name) found.set(`set ${index} ${oneLine(name)}`, oneLine(value));
        }
        return found;
    }

    /* The library's lesson with these changes; null, and a sentence, if it refuses them. */
    function compute() {
        const request = requestOf(true);
        if (request === answer.request) return { lesson: answer.lesson, sentence: "" };
        const start = performance.now(), { lessons: computed, error } = library.answer(request);
        if (error) return { lesson: null, sentence: error + "." };
        answer = { request, lesson: connect(computed[0]), time: performance.now() - start };
        rightLesson = computed[0].rule ? library.answer(requestOf(false)).lessons[0] : null;
        return { lesson: answer.lesson, sentence: "" };
    }

    /* The lesson that an address shows: the recorded one, or an answer of the library. */
    function read(lesson, wanted) {
        recorded = lesson;
        changes = lesson.settings ? changesIn(wanted) : new Map();
        if (changes.size === 0 || loading) return { lesson, sentence: "" };
        const computed = library ? compute() : { lesson: null, sentence: Live.refused };
        if (computed.lesson) return computed;
        changes = new Map();
        return { lesson, sentence: computed.sentence };
    }

    /* Makes changes, key -> text or null for the recorded value. If the library refuses them, nothing changes. */
    function change(wanted) {
        const before = changes;
        changes = new Map(before);
        for (const [key, value] of Object.entries(wanted)) {
            if (value === null || (!isEdit(key) && value === ownValue(key))) changes.delete(key);
            else changes.set(key, value);
        }
        const { lesson, sentence } = changes.size ? compute() : { lesson: recorded, sentence: "" };
        if (!lesson) changes = before;
        else showLesson(lesson);
        if (sentence) update(sentence);
        return sentence;
    }

    const startAgain = () => change(Object.fromEntries([...changes.keys()].map(key => [key, null])));

    /* ---- the settings -------------------------------------------------------------------------------------------- */

    function drawSetting({ key, kind, least, most, value }) {
        const isSwitch = kind === "switch", slides = key === "step";
        const type = isSwitch ? "checkbox" : slides ? "range" : "number";
        const limits = isSwitch ? {} : { min: String(least), max: String(most), step: kind === "number" ? "any" : "1" };
        const input = el("input", { type, id: "set-" + key, disabled: !library, ...limits });
        const number = slides && el("output", {}, String(value));
        const set = () => {
            const text = isSwitch ? textOf(input.checked !== isInverted(key)) : input.value.trim();
            change({ [key]: text });
        };
        input.addEventListener(slides ? "input" : "change", set);
        inputs.set(key, input);
        return el("label", { class: slides && "slides" }, isSwitch && input, words[key] || key, !isSwitch && input,
            number);
    }

    function drawRules() {
        const onchange = () => change({ rule: select.value });
        const select = el("select", { id: "set-rule", disabled: !library, onchange });
        inputs.set("rule", select);
        return el("label", {}, "break it:", select);
    }

    /* The controls of this lesson stay while the lesson is shown: a control that is drawn again loses the focus. */
    function draw() {
        const box = byId("change");
        inputs = new Map();
        box.hidden = !recorded.settings;
        if (box.hidden) return;
        const onclick = () => {
            expanded = !expanded;
            open.setAttribute("aria-expanded", expanded);
        };
        const open = el("button", { id: "change-open", "aria-expanded": String(expanded), "aria-controls": "settings",
            onclick }, "change it");
        const again = el("button", { id: "again", onclick: startAgain }, "start again");
        box.replaceChildren(open, el("div", { id: "settings" }, recorded.settings.map(drawSetting), drawRules(), again),
            el("p", { id: "changed", role: "status" }));
        box.dataset.lesson = recorded.number;
    }

    /* Shows the values in use, and a sentence if the library refused others. */
    function update(sentence) {
        for (const [key, input] of inputs) {
            const value = valueNow(key);
            if (key === "rule") updateRules(input);
            if (input.type === "checkbox") input.checked = (value === "1") !== isInverted(key);
            else input.value = value;
            if (input.type === "range") input.nextElementSibling.textContent = `${value}, loss ${lossOf(state.lesson)}`;
            if (key === "causal" && library) input.disabled = inputs.has("no-mask") && valueNow("no-mask") === "1";
        }
        if (!inputs.size) return;
        byId("again").disabled = changes.size === 0;
        byId("changed").className = sentence ? "refused" : "";
        byId("changed").replaceChildren(...(sentence || loading || !library ? [sentence || (loading ? "" : Live.refused)]
            : state.lesson.rule ? ["A rule of backward is wrong now. See the red badge: ", redBadges(state.lesson)[0]]
            : [status()]));
    }

    /* The last line makes the loss. */
    const lossOf = ({ tape: { lines } }) => bare(lines[lines.length - 1].result.value[0]);
    const status = () => changes.size
        ? `The C library in this page computed these numbers, in ${answer.time.toFixed(0)} ms. The loss is ` +
            `${lossOf(state.lesson)}; without your changes it is ${lossOf(recorded)}. The address is a link to this ` +
            "example."
        : "Change anything: the same C library, in this page, computes all numbers anew. To type another number, click a " +
            "cell of a leaf.";

    function updateRules(select) {
        const { rules } = state.lesson;
        select.replaceChildren(new Option("all rules are right", ""),
            ...rules.map(({ key, title }) => new Option(title, key)));
    }

    /* ---- a wrong rule -------------------------------------------------------------------------------------------- */

    /* The rule that backward used in this line, if it is a wrong one. */
    function wrongRuleOf(line) {
        const { rules, rule } = state.lesson;
        return rule && !isChecked(line) ? rules.find(({ key }) => key === rule).wrong : "";
    }

    /* The gradient with the right rule, if this lesson was computed with a wrong one. */
    function rightGrad(t) {
        const isThis = rightLesson && state.lesson === answer.lesson;
        return isThis && t.grad ? rightLesson.tape.tensors[t.number].grad.map(Number) : null;
    }

    const differs = (a, b) => !(Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)));

    function rightNumber(t, i) {
        const grad = rightGrad(t);
        return grad && differs(grad[i], t.grad[i]) &&
            el("p", { class: "refused" }, `Wrong: with the right rule this number is ${full(grad[i])}.`);
    }

    function changedByRule(t) {
        const grad = rightGrad(t), changed = grad ? grad.filter((x, i) => differs(x, t.grad[i])).length : 0;
        const why = t.check.right ? ": the check of a leaf sees only whether its terms were added up." : ".";
        return changed > 0 &&
            el("b", { class: "refused" },
                ` The wrong rule changed ${changed} of the ${grad.length} numbers of this gradient${why}`);
    }

    /* Links to the steps whose badges are red. */
    function redBadges({ tape, steps }) {
        const stepOf = line => steps.findIndex(step => step.kind === "backward" && step.line === line);
        const link = (step, text) => el("a", { href: address(step, null) }, text);
        const lines = tape.lines.filter(line => !isChecked(line)).map(line =>
            link(stepOf(line), `${nameOf(line.result)}: differences disagree with its backward`));
        const leaves = tape.tensors.filter(t => t.check && !t.check.right).map(t =>
            link(t.gradStep, `${nameOf(t)}: its terms do not sum to its gradient`));
        return [...lines, ...leaves];
    }

    function drawBroken(lesson) {
        const box = byId("broken"), rule = (lesson.rules || []).find(({ key }) => key === lesson.rule);
        box.hidden = !rule;
        if (!rule) return box.replaceChildren();
        const { right, wrong } = lesson.training || {}, last = list => bare(Number(list[list.length - 1]));
        const isAsGood = (a, b) => Number(b[b.length - 1]) < 2 * Number(a[a.length - 1]);
        box.replaceChildren(...[
            el("h2", {}, "Broken: ", rule.title),
            el("dl", {}, el("dt", {}, "wrong"), el("dd", {}, el("code", {}, rule.wrong)),
                el("dt", {}, "right"), el("dd", {}, el("code", {}, rule.right))),
            el("p", {}, "The values are right, and these checks see that gradients are not:"),
            el("ul", { class: "red" }, redBadges(lesson).map(link => el("li", {}, link))),
            wrong && drawCurves([{ name: "right", losses: right.map(Number) },
                { name: "wrong", losses: wrong.map(Number) }]),
            wrong && el("p", {}, `${right.length} steps of SGD from the same numbers: the loss ends at ${last(right)} ` +
                `with the right rule, at ${last(wrong)} with the wrong one.` + (isAsGood(right, wrong)
                ? " A step against the wrong gradient still lowers the loss: the losses do not show the mistake, only the " +
                    "check does." : "")),
            library && el("button", { onclick: () => change({ rule: "" }) }, "put the right rule back")].filter(Boolean));
    }

    /* ---- a number of a leaf -------------------------------------------------------------------------------------- */

    const canType = (part, t) => library && recorded.settings && part === "v" && !t.producer && t.name !== "";

    /* For the card of the chosen number: a field for another value of it. */
    function field(part, t, i) {
        if (!canType(part, t)) return null;
        const key = editKey(t, i), input = numberField(`another number for ${nameOf(t)}${at(t, i)}`);
        const say = el("small", { role: "status" });
        const set = value => {
            const sentence = change({ [key]: value });
            if (sentence) say.textContent = sentence;
            else (cellOf(state.cell) || byId("why")).focus({ preventScroll: true });
        };
        const submit = event => {
            event.preventDefault();
            const x = readNumber(input);
            if (Number.isFinite(x)) set(String(x));
            else say.textContent = "That is no number.";
        };
        const back = changes.has(key) &&
            el("button", { type: "button", onclick: () => set(null) }, "put the old number back");
        input.id = "type";
        input.value = full(t.value[i]);
        return el("form", { class: "type", onsubmit: submit }, el("label", {}, "change it to ", input),
            el("button", {}, "set"), back, say);
    }

    /* A digit that is typed in a cell begins another number. */
    function typeIn(key) {
        const input = byId("type");
        if (!input || !/^[-.\d]$/.test(key)) return false;
        input.value = key;
        input.focus();
        return true;
    }

    /* ---- the beginning ------------------------------------------------------------------------------------------- */

    /* After page.js has drawn a lesson. */
    function drawn(lesson) {
        if (byId("change").dataset.lesson !== String(recorded.number) || !inputs.size) draw();
        update("");
        drawBroken(lesson);
    }

    async function begin() {
        library = await Live.load();
        loading = false;
        delete byId("change").dataset.lesson;
        if (changes.size) readAddress();
        else if (state.lesson) drawLesson(state.lesson); /* the playground was opened without a lesson */
    }

    /* Did the reader type this number? */
    const isTyped = (t, i) => !t.producer && changes.has(editKey(t, i));
    const isEdited = () => [...changes.keys()].some(isEdit);

    return { begin, read, suffix, drawn, field, typeIn, isTyped, isEdited, wrongRuleOf, rightNumber, changedByRule,
        isLoading: () => loading, isLive: () => library !== null,
        stepOfTraining: () => Number(library ? valueNow("step") : ownValue("step")) };
})();
