/* change.js - the panel that changes a lesson: its settings, and the way back from all changes. */
"use strict";

const settingWords = { causal: "causal mask", "no-scale": "scale", "no-mask": "mask",
    lengths: "padding at the end, told by lengths" };
const hasField = /^(seed|words|no-scale|no-mask|causal|lengths|heads|dropout)$/; /* what the texts speak of; the others stand in an address */
const isInverted = key => key.startsWith("no-"); /* "no-scale" is a box that is checked where there is a scale */
let inputs = new Map(); /* key of a setting -> its control, while its panel is open */

function drawSetting({ key, kind, least, most }) {
    const isSwitch = kind === "switch", isText = kind === "text" || kind === "words";
    const type = isSwitch ? "checkbox" : isText ? "text" : "number";
    const limits = isSwitch || isText ? {} : { min: String(least), max: String(most), step: kind === "number" ? "any" : "1" };
    const input = el("input", { type, id: "set-" + key, disabled: !Controls.isLive(), autocomplete: "off", ...limits });
    const set = () => tellPanel(Controls.change({ [key]: isSwitch
        ? (input.checked !== isInverted(key) ? "1" : "0") : input.value.trim() }));
    input.addEventListener("change", set);
    inputs.set(key, input);
    return el("label", { class: isText ? "wide" : "" }, isSwitch && input, settingWords[key] || key,
        !isSwitch && input, limits.max && key !== "seed" && el("small", {}));
}

function drawChange() {
    const settings = Controls.settings().filter(({ key }) => hasField.test(key));
    return [el("h2", {}, "The example"),
        settings.length === 0 && el("p", {}, "This tape was recorded: it has no settings."),
        el("div", { class: "fields" }, settings.map(drawSetting)),
        el("div", { class: "buttons" }, button("side by side", () => Controls.setCompare(!state.compare), { id: "compare" }),
            button("start again", beginAgain, { id: "again" })),
        el("p", { id: "changed", role: "status" })];
}

/* First the example is the lesson's own again; pressed once more, and after saying what goes, it takes the answers away. */
let isSure = false;
function beginAgain() {
    const { lesson } = state, what = keptInWords(lesson);
    if (Controls.isChanged()) return tellPanel(Controls.startAgain());
    if (isSure) forgetAll(lesson);
    updatePanel();
    isSure = !isSure && what !== "";
    if (isSure) byId("changed").textContent = `Once more, and this page forgets ${what} of this lesson.`;
}

/* Shows the values in use. */
function updatePanel() {
    isSure = false;
    updateValues();
    for (const [key, input] of inputs) {
        const { least, most } = state.lesson.settings?.find(each => each.key === key) || {}; /* others stay as they are */
        if (input.type === "number" && most !== undefined) {
            input.max = most;
            if (key !== "seed") input.nextElementSibling.textContent = `${least} to ${most}`;
        }
        if (/^(causal|lengths)$/.test(key) && Controls.isLive())
            input.disabled = inputs.has("no-mask") && Controls.valueNow("no-mask") === "1";
    }
    byId("b-example").classList.toggle("used", Controls.isChanged());
    if (byId("compare")) byId("compare").disabled = !Controls.otherState() || state.hide;
    byId("compare")?.setAttribute("aria-pressed", String(state.compare));
    if (byId("changed")) tellPanel("");
}

/* The sentence with which the library refused a change, or what the last change did. */
function tellPanel(sentence) {
    const box = byId("changed");
    if (!box) return sentence;
    box.className = sentence ? "refused" : "";
    const loss = lesson => bare(lossOf(lesson));
    box.textContent = sentence || (Controls.isLoading() ? "" : !Controls.isLive() ? Live.refused : Controls.isChanged()
        ? `The C library in this page computed these numbers, in ${Controls.time().toFixed(0)} ms. The loss is ${loss(state.lesson)}; it was ` +
            `${loss(Controls.recorded())} before your changes. The address is a link to this example.`
        : "The same C library, in this page, computes all numbers anew. To type another number, choose a cell of what was given.");
    if (sentence) updateValues();
    return sentence;
}

/* Also after a refusal the controls show the values in use. */
function updateValues() {
    for (const [key, input] of inputs) {
        const value = Controls.valueNow(key);
        if (input.type === "checkbox") input.checked = (value === "1") !== isInverted(key);
        else if (input.value !== value) input.value = value;
    }
}
