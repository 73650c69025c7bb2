/* controls.js - what a reader changes in a lesson: a setting, a number in a cell of a leaf, a rule of backward. The
 * library in this page (live.js) then computes the lesson anew, and the page shows its answer like a recorded one.
 *
 * Each change stands in the address, "#5/b3.0&heads=2&rule=softmax&set=3,0.5,W_q" (element 3 of W_q becomes 0.5), so a
 * link shows the same numbers to others. A rule with a colon is one that the reader wrote, "&rule=A: y * dy"; there may be
 * several. Without changes the recorded lesson is shown. change.js draws the controls, door.js the box for a rule. */
"use strict";

const Controls = (() => {
    /* In an address "step" was the step of the page. --break is the flag of a rule. */
    const inAddress = { step: "sgd" }, alias = { break: "rule" };

    let library = null; /* what Live.load gave */
    let loading = true;
    let recorded = null; /* the lesson of the page that the changes belong to */
    /* key -> text: "heads" -> "2", "rule" -> "softmax", "set 3 W_q" -> "0.5", "rule:A" -> "y * dy" */
    let changes = new Map();
    let answer = { request: "", lesson: null }; /* the last one */
    let asked = new Map(); /* other answers for the same recorded lesson: request -> answer */

    /* ---- requests and addresses ---------------------------------------------------------------------------------- */

    const textOf = value => (value === true ? "1" : value === false ? "0" : String(value));
    /* The words of the tokens are a text of their own in the data. */
    const settingsOf = ({ settings = [], words }) =>
        (settings.length && words ? [...settings, { key: "words", kind: "text", value: words.join(" ") }] : settings);
    const settingOf = key => settingsOf(recorded).find(setting => setting.key === key);
    const ownValue = key => (key === "rule" ? recorded.rule || "" : textOf(settingOf(key).value));
    const valueNow = key => changes.get(key) ?? ownValue(key);
    const isEdit = key => key.startsWith("set ");
    const editKey = (t, i) => `set ${i} ${t.name}`;
    const readEdit = key => /^set (\d+) (.*)$/.exec(key).slice(1);
    const isRule = key => key.startsWith("rule:"); /* that the reader wrote */
    const ruleIn = ([key, formula]) => `${key.slice("rule:".length)}: ${formula}`;

    /* What the recorded lesson was given: the flags in "build/explain --lesson 5 --heads 2 --causal". */
    function givenTo({ command }) {
        const given = new Map();
        for (const [, flag, quoted, value] of command.matchAll(/--(\S+)(?: (?:"([^"]*)"|(?!--)(\S+)))?/g))
            if (flag === "rule") given.set("formula", given.has("formula") ? `${given.get("formula")}\nformula ${quoted}` : quoted);
            else if (flag === "no-causal") given.set("causal", "0");
            else given.set(flag === "break" ? "rule" : flag, quoted ?? value ?? "1");
        return given;
    }

    /* See live.h. rules: false leaves out all rules; more: other lines, as {train: 1}. */
    function requestOf({ rules = true, ...more } = {}) {
        const own = [...changes].filter(([key]) => !isEdit(key) && !isRule(key));
        const settings = new Map([...givenTo(recorded), ...own]);
        if (recorded.part) settings.set("lesson", recorded.number + recorded.part);
        if (!rules) for (const key of ["rule", "formula"]) settings.delete(key);
        const written = [...changes].filter(([key]) => rules && isRule(key)).map(rule => `rule ${ruleIn(rule)}`);
        const edits = [...changes].filter(([key]) => isEdit(key)).map(([key, value]) => {
            const [index, name] = readEdit(key);
            return `set ${index} ${value} ${name}`;
        });
        return [...[...settings].map(([key, value]) => `${key} ${value}`), ...written, ...edits,
            ...Object.entries(more).map(([key, value]) => `${key} ${value}`)].join("\n");
    }

    /* "&heads=2&set=3,0.5,W_q" */
    const suffix = () => [...changes].map(([key, value]) => {
        const [index, name] = isEdit(key) ? readEdit(key) : [];
        if (isRule(key)) return `&rule=${encodeURIComponent(ruleIn([key, value]))}`;
        return isEdit(key) ? `&set=${index},${encodeURIComponent(value)},${encodeURIComponent(name)}`
            : `&${inAddress[key] || key}=${encodeURIComponent(value)}`;
    }).join("") + (state.compare ? "&compare=1" : "");

    /* A newline would begin another setting of the request. */
    const oneLine = text => text.replace(/\s/g, " ");

    /* The changes that an address asks for, and the words in it that mean nothing here. */
    function changesIn(wanted) {
        const found = new Map(), unknown = [], keyFor = new Map([["rule", "rule"]]);
        for (const { key } of settingsOf(recorded)) keyFor.set(inAddress[key] || key, key);
        for (const [word, value] of wanted) {
            if (word === "float32") continue; /* an old address: the digits were fewer */
            const key = keyFor.get(alias[word] || word), [, index, number,
                name] = /^(\d+),([^,]+),(.+)$/.exec(value) || [];
            const [, gradient, formula] = key === "rule" && /^\s*([^:]*?)\s*:\s*(.*)$/s.exec(value) || [];
            if (word === "set" && name) found.set(`set ${index} ${oneLine(name)}`, oneLine(number));
            else if (gradient && recorded.settings) found.set(`rule:${oneLine(gradient)}`, oneLine(formula));
            else if (word === "compare") state.compare = value === "1";
            else if (!key || !recorded.settings) unknown.push(word);
            else if (value !== ownValue(key)) found.set(key, oneLine(value));
        }
        return { found, unknown };
    }

    /* ---- answers ------------------------------------------------------------------------------------------------- */

    const isSame = lesson => lesson.number === recorded.number && (lesson.part || "") === (recorded.part || "");
    const chosenOf = computed => prepare({ ...(computed.find(isSame) || computed[0]), name: recorded.name });

    const MOST_ASKED = 12; /* answers that are kept */

    /* The answer to a request, which is asked once. */
    function ask(request) {
        const found = asked.get(request) || library.answer(request);
        asked.delete(request);
        asked.set(request, found); /* the last one asked for is the last one to go */
        if (asked.size > MOST_ASKED) asked.delete(asked.keys().next().value);
        return found;
    }

    /* What the library's forward computes for other numbers of the lesson that is shown: lines "probe" and "show" of live.h. */
    const forward = lines => library.answer([requestOf({ rules: false }), ...lines].join("\n")).probe;

    const onlyRules = () => [...changes.keys()].every(key => isRule(key) || key === "rule");

    /* The lesson with the same changes, but all rules right. */
    let right = { request: "", lesson: null };
    function rightLesson() {
        const request = requestOf({ rules: false }), isRecorded = onlyRules() && !hasRules(recorded);
        if (right.request === request) return right.lesson;
        right = { request, lesson: isRecorded ? recorded : chosenOf(library.answer(request).lessons) };
        return right.lesson;
    }

    /* A page that was made with a wrong rule gets the right lesson, too, when the library is there. */
    function findRight() {
        if (library && recorded && hasRules(recorded) && changes.size === 0) recorded.rightOne ??= rightLesson();
    }

    /* The library's lesson with these changes; null, and a sentence, if it refuses them. */
    function compute() {
        const request = requestOf();
        if (request === answer.request) return { lesson: answer.lesson, sentence: "" };
        const start = performance.now(), { lessons: computed, error } = library.answer(request);
        if (error) return { lesson: null, sentence: error + "." };
        const lesson = chosenOf(computed);
        answer = { request, lesson, time: performance.now() - start };
        if (hasRules(lesson)) lesson.rightOne = rightLesson();
        else right = { request, lesson };
        return { lesson, sentence: "" };
    }

    /* The lesson that an address shows: the recorded one, or an answer of the library. */
    function read(lesson, wanted) {
        if (recorded !== lesson) asked = new Map();
        recorded = lesson;
        state.compare = false;
        const { found, unknown } = changesIn(wanted), isOff = found.size > 0 && !loading && !library;
        const ignored = unknown.length
            ? `The address says ${unknown.map(word => `“${word}”`).join(", ")}: nothing here has that name.` : "";
        changes = found;
        findRight();
        if (changes.size === 0 || loading) return { lesson, sentence: ignored };
        const computed = isOff ? { lesson: null, sentence: Live.refused } : compute();
        if (computed.lesson) return { lesson: computed.lesson, sentence: ignored };
        changes = new Map();
        return { lesson, sentence: computed.sentence };
    }

    /* Makes changes, key -> text or null for the recorded value. If the library refuses them, nothing changes, and its
     * sentence is returned. */
    function change(wanted) {
        const before = changes;
        changes = new Map(before);
        for (const [key, value] of Object.entries(wanted)) {
            if (value === null || (!isEdit(key) && !isRule(key) && value === ownValue(key))) changes.delete(key);
            else changes.set(key, value);
        }
        const { lesson, sentence } = changes.size ? compute() : { lesson: recorded, sentence: "" };
        if (!changes.size) state.compare = false;
        fill(byId("notice"));
        if (!lesson) changes = before;
        else showLesson(lesson);
        return sentence;
    }

    const startAgain = () => change(Object.fromEntries([...changes.keys()].map(key => [key, null])));

    /* ---- two states ---------------------------------------------------------------------------------------------- */

    /* The state beside this one: with the right rule, or without the changes; null if there is none. */
    function otherState() {
        if (!changes.size || state.lesson !== answer.lesson) return null;
        return answer.lesson.rightOne || recorded;
    }

    function setCompare(on) {
        state.compare = on;
        drawAgain();
        drawn();
    }

    const differs = (a, b) => !(Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)));

    /* How many numbers of this leaf's gradient the wrong rule changed. */
    function changedByRule(t) {
        const { rightOne } = state.lesson, grad = rightOne && t.grad ? rightOne.tape.tensors[t.number].grad : [];
        return grad.filter((x, i) => differs(x, t.grad[i])).length;
    }

    /* ---- a rule that the reader writes --------------------------------------------------------------------------- */

    const canWriteRules = () => !!library && !!recorded.settings;

    /* The help of the language, and the places of this tape where a rule can be written: see live.h. */
    const box = () => ask(requestOf({ rules: false, box: 1 })).box || { help: [], places: [] };

    /* What it says of the lines of a card, "dA: dY @ V'", whatever rules are planted: see live.h. */
    const judgeCard = lines => (library ? ask([requestOf({ rules: false, card: 1 }),
        ...lines.map(line => `rule ${oneLine(line)}`)].join("\n")).card || [] : []);

    const isAtPlace = place => ({ line, input }) => line === place.line && input === place.input;

    /* The changes that are rules of this place, by whatever name. */
    const keysAt = place => [place, ...(state.lesson.planted || []).filter(each => each.typed && isAtPlace(place)(each))]
        .map(({ name }) => `rule:${name}`);

    /* What the library says of a formula at this place, without planting it: {error}, or {planted}. */
    function tryRule(place, formula) {
        const before = changes;
        changes = new Map([...changes].filter(([key]) => !keysAt(place).includes(key)));
        changes.set(`rule:${place.name}`, oneLine(formula));
        const { error, box: found } = ask(requestOf({ box: 1 }));
        changes = before;
        return error ? { error } : { planted: found.planted.find(isAtPlace(place)) };
    }

    /* Plants a formula, or, for null, takes back the one that is there. Returns a sentence if the library refuses it. */
    function plantRule(place, formula) {
        const without = Object.fromEntries(keysAt(place).map(key => [key, null]));
        return change(formula === null ? without : { ...without, [`rule:${place.name}`]: oneLine(formula) });
    }

    /* The losses of 200 steps of SGD with the right rules and with those of the reader: {right, wrong}. */
    const isTrained = () => !library || asked.has(requestOf({ train: 1 }));
    const training = () => (library && ask(requestOf({ train: 1 })).lessons?.find(isSame)?.training) || state.lesson.training || {};

    /* ---- a number of a leaf -------------------------------------------------------------------------------------- */

    const canType = t => library && recorded.settings && !t.producer && t.name !== "";

    /* For the line of terms: a field for another value of a number that was given. */
    function field(t, i) {
        if (!canType(t)) return null;
        const key = editKey(t, i),
            input = numberField(`another number for ${plain(t.title)} ${placeWords(viewOf(t, "v"), i)}`, 6, { id: "type" });
        const said = el("span", { class: "said", role: "status" });
        const set = value => {
            const chosen = state.hover || state.chosen || "v" + t.number + "." + i, sentence = change({ [key]: value });
            if (sentence) said.textContent = sentence;
            else {
                choose(chosen);
                (cellAt(chosen) || byId("step")).focus({ preventScroll: true });
            }
        };
        const submit = event => {
            event.preventDefault();
            const { x, refused } = typedNumber(input);
            if (refused) said.textContent = refused;
            else set(String(x));
        };
        const back = changes.has(key) && button("put the old number back", () => set(null));
        return el("form", { class: "guess", onsubmit: submit }, input, el("button", {}, "change it"), back, said);
    }

    /* A digit that is typed in a cell of a leaf begins another number. */
    function typeIn(key) {
        const input = byId("type");
        if (!input || !/^[-.\d]$/.test(key)) return false;
        input.value = key;
        input.focus();
        return true;
    }

    /* ---- steps of SGD -------------------------------------------------------------------------------------------- */

    const isSgdKey = key => key === "step" || key === "rate";
    const onlySgd = () => [...changes.keys()].every(isSgdKey);

    /* The lesson with the same changes, before any step was taken. */
    const firstLesson = () => (onlySgd() && ownValue("step") === "0" ? recorded
        : ask(requestOf({ step: 0 })).lessons?.find(isSame));

    /* ---- the beginning ------------------------------------------------------------------------------------------- */

    /* After the page has drawn a lesson. */
    function drawn() {
        updatePanel();
    }

    async function begin() {
        library = await Live.load();
        loading = false;
        findRight();
        if (changes.size) readAddress();
        else if (state.lesson) {
            drawAgain();
            drawn();
        }
    }

    const isTyped = (t, i) => !t.producer && changes.has(editKey(t, i)); /* did the reader type this number? */

    return { begin, read, suffix, change, startAgain, valueNow, drawn, field, typeIn, isTyped, changedByRule,
        otherState, setCompare, forward, ask: request => library && ask(request), canWriteRules, box, judgeCard, tryRule, plantRule, requestOf, onlyRules,
        isTrained, training,
        settings: () => settingsOf(recorded), recorded: () => recorded, isChanged: () => changes.size > 0,
        isLoading: () => loading, isLive: () => library !== null, time: () => answer.time,
        isSgdKey, onlySgd, firstLesson, mostSteps: () => settingOf("step").most };
})();
