/* questions.js - the questions of a lesson. Each stands at the step that it asks about, and stays as it was answered: its
 * form is made once for a lesson. Each kind has a field, a check, a hint, and what is revealed. */
"use strict";

/* The step where a question without a step of its own belongs. */
function placeOf({ kind, tensor, part, line, input }) {
    const { tape: { tensors }, steps } = state.lesson, t = tensors[tensor];
    if (kind === "number") return steps[part === "grad" ? t.gradStep : t.valueStep] || steps[0];
    if (kind === "zeros") return steps[t.gradStep];
    if (kind === "count") return steps[stepOf(state.lesson, `b${line}.${input}`)];
    return steps[steps.length - 1];
}

const isAsked = (question, step) => (question.at ? isAt(question.at, step) : placeOf(question) === step);

/* The questions of this step, with their numbers in the lesson. */
const questionsNow = () => (state.lesson.questions || []).map((question, n) => ({ question, n }))
    .filter(({ question }) => isAsked(question, stepNow()));

/* Questions that hide something come first. */
const inOrder = list => list.slice().sort((a, b) => (a.question.kind === "choice") - (b.question.kind === "choice"));

/* One question is open; others of the step are folded under it. */
function drawQuestions() {
    const [first, ...others] = inOrder(questionsNow()).map(({ question, n }) => drawQuestion(question, n));
    return first && el("div", { id: "questions" }, first, others.length > 0 && el("details",
        { class: "others", open: state.others, ontoggle: event => (state.others = event.target.open) },
        el("summary", {}, others.length > 1 ? `${others.length} more questions` : "one more question"), others));
}

/* Scrolls down to the end of an element, but, if the tables are needed with it, not so far that they leave the window. */
function reachDown(element, withTables = true) {
    const hidden = element.getBoundingClientRect().bottom + 10 - innerHeight,
        room = withTables ? byId("step").getBoundingClientRect().top - 8 : hidden;
    if (innerWidth >= 1100 && Math.min(hidden, room) > 0) scrollBy(0, Math.min(hidden, room));
}

function drawQuestion(question, n) {
    const form = (state.lesson.forms[n] ??= newQuestion(question, n));
    if (question.kind === "zeros") form.querySelector(".reply").hidden = isShown(keyAsked(question));
    return form;
}

/* The questions of this step whose answers do not stand there yet. */
const openQuestions = () => questionsNow().filter(({ n }) => !state.lesson.told.has(n));

/* The answers of this step, for a class that has guessed; false if all of them stand there. */
function revealAnswers(isWanted = () => true) {
    const open = openQuestions().filter(({ question, n }) => isWanted(question) && state.lesson.forms[n]);
    for (const { n } of open) state.lesson.forms[n].querySelector("[data-reveal]").click();
    if (open.length) drawAgain(); /* they need room */
    return open.length > 0;
}

function newQuestion(question, n) {
    const { lesson } = state, { field, check, hint, reveal } = questionKinds[question.kind](question);
    const result = el("div", { class: "result", role: "status" });
    const button = (text, onclick, more) => el("button", { type: "button", onclick, ...more }, text);
    const give = button("reveal", () => {
        tell(reveal());
        showTerms();
        reachDown(result);
    }, { hidden: true, "data-reveal": true });
    const hinted = () => el("p", {}, "Hint: ", question.hint ? prose(question.hint) : hint());
    let tries = 0; /* that were wrong, and not empty or no number */
    const patience = question.hint && (question.options || []).length > 2 ? 1 : 2; /* tries before the hint */
    function tell(words, grade) {
        lesson.told.add(n);
        fill(result, grade, words.map(each => el("p", {}, each)));
        if (question.kind === "number") state.chosen = keyAsked(question); /* the line of terms says what it is made of */
        if (question.kind === "count") state.chosen = picture.main.key(question.index);
        if (question.kind !== "choice") show([keyAsked(question)]);
    }
    function submit(event) {
        event.preventDefault();
        const { isRight, words } = check(), name = isRight ? "right" : "wrong",
            grade = el("p", { class: name }, icon(name), " ", words);
        give.hidden = false;
        if (isRight) {
            lesson.right.add(n);
            tell(reveal(), grade);
        } else {
            tries += !/first\.$|no number/.test(words);
            fill(result, grade, tries >= patience && hinted());
        }
        if (isRight) showTerms(); /* all that a question kept back */
        reachDown(result);
        drawBar();
        if (state.step === lesson.steps.length - 1) byId("end")?.closest(".end")?.replaceWith(drawEnd(stepNow()));
    }
    return el("form", { class: "question " + question.kind, "data-kind": question.kind, onsubmit: submit,
        "aria-label": `Question ${n + 1}` },
        el("p", {}, el("b", {}, "? "), prose(question.ask)),
            el("div", { class: "reply" }, field, el("div", { class: "buttons" },
            el("button", { "data-check": true }, "check"),
            button("hint", () => {
                fill(result, hinted());
                give.hidden = false;
                reachDown(result);
            }), give)), result);
}

const numberField = label => el("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: "8",
    "aria-label": label });
const notYet = words => ({ isRight: false, words });

/* With how many decimals do the tables of this step show numbers of t? The fewest of them. */
function fewestDecimals(of, t) {
    const views = picture ? tablesIn(picture).filter(view => view.t === t && view.of === of) : [];
    return Math.min(...(views.length ? views : [viewOf(t, of)]).map(({ format: { d, e } }) => Math.max(0, d - e)));
}

/* Is this x, rounded to the decimals that were typed? They have to be as many as a table shows: a reader may copy what the
 * page says. 0 is right for 0 alone. */
function isRounding(text, guess, x, fewest) {
    const [, decimals = ""] = /[.,](\d*)\s*$/.exec(text) || [], d = decimals.length;
    return d >= fewest && guess !== 0 && Math.abs(guess - x) <= 0.50001 * 10 ** -d;
}

const questionKinds = {
    /* Predict a number: its cell is hidden until then. */
    number({ tensor, part, index }) {
        const t = state.lesson.tape.tensors[tensor], isGrad = part === "grad", x = t[part][index],
            field = numberField("your prediction");
        return {
            field,
            check() {
                const guess = readNumber(field), fewest = fewestDecimals(isGrad ? "g" : "v", t), isClose = y =>
                    Math.abs(guess - y) <= Math.max(0.0005, 0.01 * Math.abs(y)) || isRounding(field.value, guess, y, fewest);
                if (field.value.trim() === "") return notYet("Enter a number first.");
                if (guess !== guess) return notYet("That is no number.");
                if (isClose(x)) return { isRight: true, words: "Right." };
                if (Math.abs(x) > 0.001 && isClose(-x)) return notYet("The size is right, the sign is not.");
                if (Math.abs(x) > 0.001 && isClose(x / 2)) return notYet("Not yet: the answer is twice your number.");
                if (Math.abs(x) > 0.001 && isClose(2 * x)) return notYet("Not yet: the answer is half of your number.");
                return notYet("Not yet.");
            },
            hint: () => (isGrad
                ? "choose the cell: the line under the tables shows for other cells of the table what they are made of. Do the same for this one."
                : "read the rule above the tables, and work it out for this cell."),
            reveal: () => [[numberName(isGrad ? "g" : "v", t, index), ` is ${bare(x)}.`]],
        };
    },
    /* Choose all cells of a gradient that are 0: in the table of the step, which is hidden until then (predict.js). */
    zeros({ tensor }) {
        const t = state.lesson.tape.tensors[tensor], all = [...t.grad.keys()], { picks } = state.lesson;
        const isZero = i => t.grad[i] === 0, isChosen = i => picks.has(`g${tensor}.${i}`);
        return {
            field: el("span", { class: "soft" }, "Click the cells. "),
            check() {
                const missing = all.filter(i => isZero(i) && !isChosen(i)).length,
                    extra = all.filter(i => !isZero(i) && isChosen(i)).length;
                if (!all.some(isChosen) && missing) return notYet("Choose cells of the table first.");
                return missing || extra ? notYet(`Not yet: ${missing} missing, ${extra} too many.`)
                    : { isRight: true, words: "Right." };
            },
            hint: () => "a gradient is 0 where every path from the number to the loss is cut. Follow each path.",
            reveal() {
                const zeros = all.filter(isZero), reasons = [...new Set(zeros.map(i => t.zeros.g.get(i)))];
                return [`${zeros.length} of ${all.length} are 0${reasons.length ? ": " + reasons.join("; ") : ""}.`];
            },
        };
    },
    /* How many terms does a gradient have? */
    count({ line: number, input, index }) {
        const line = state.lesson.tape.lines.find(each => each.line === number), tensor = line.inputs[input],
            reached = reachedBy(line, input, index), wanted = reached.length;
        const field = numberField("how many terms");
        return {
            field,
            check() {
                if (field.value.trim() === "") return notYet("Enter a number first.");
                const guess = readNumber(field);
                if (guess !== guess) return notYet("That is no number.");
                return guess === wanted ? { isRight: true, words: "Right." } : notYet("Not yet.");
            },
            hint: () => ["count the numbers of ", nameEl(line.result.symbol), " that change when ",
                numberName("v", tensor, index), " changes."],
            reveal: () => [[`${wanted} terms, one from each of `,
                listed(reached.slice(0, MOST_TERMS).map(j => numberName("v", line.result, j))),
                wanted > MOST_TERMS && ", …"]],
        };
    },
    choice({ options, answer, why }) {
        const name = "choice" + Math.random(), inputs =
            options.map((_, n) => el("input", { type: "radio", name, value: String(n) }));
        return {
            field: el("div", { class: "choices", onmousedown: event => event.preventDefault() },
                options.map((option, n) => el("label", {}, inputs[n], el("span", {}, prose(option))))),
            check() {
                if (!inputs.some(input => input.checked)) return notYet("Choose one first.");
                return inputs[answer].checked ? { isRight: true, words: "Right." } : notYet("Not yet.");
            },
            hint: () => "read the text of this step once more, and compare it with the tables.",
            reveal: () => [[...prose(options[answer]), /[.!?]$/.test(options[answer]) ? " " : ". ", ...prose(why)]],
        };
    },
};
