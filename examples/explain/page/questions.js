/* questions.js - the questions of a lesson. Each stands at the step that it asks about, and stays as it was answered: its
 * form is made once for a lesson. Each kind has a field, a check, and what is revealed. */
"use strict";

/* The questions of this step, with their numbers in the lesson. */
const questionsNow = () => (state.lesson.questions || []).map((question, n) => ({ question, n }))
    .filter(({ question }) => isAt(question.at, stepNow()));

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
    const { lesson } = state, { field, check, reveal, said, say } = questionKinds[question.kind](question);
    const keepIt = verdict => {
        if (lesson.right.has(n)) return;
        lesson.answers[n] = [verdict, said()].filter(Boolean).join(" ");
        keep(lesson, [[placeOfAnswer(lesson, n), lesson.answers[n]]]);
    };
    const result = el("div", { class: "result", role: "status" });
    const give = button("reveal", () => {
        keepIt("told");
        tell(reveal());
        showTerms();
        reachDown(result);
    }, { hidden: true, "data-reveal": true });
    const hinted = () => el("p", {}, "Hint: ", prose(question.hint));
    let tries = 0; /* that were wrong, and not empty or no number */
    const patience = (question.options || []).length > 2 ? 1 : 2; /* tries before the hint */
    const fillResult = (words, grade) => fill(result, grade, words.map(each => el("p", {}, each)));
    const gradeOf = ({ isRight, words }) => el("p", { class: isRight ? "right" : "wrong" }, icon(isRight ? "right" : "wrong"), " ", words);
    function tell(words, grade) {
        lesson.told.add(n);
        fillResult(words, grade);
        if (question.kind === "number") state.chosen = keyAsked(question); /* the line of terms says what it is made of */
        if (question.kind === "count") state.chosen = picture.main.key(question.index);
        if (question.kind !== "choice") show([keyAsked(question)]);
    }
    const fillWrong = grade => fill(result, grade, tries >= patience && hinted());
    function submit(event) {
        event.preventDefault();
        const judged = check(), { isRight, isNone } = judged, grade = gradeOf(judged);
        give.hidden = false;
        if (!isNone) keepIt(isRight ? "right" : "wrong");
        if (isRight) {
            lesson.right.add(n);
            tell(reveal(), grade);
            if (event.target.contains(document.activeElement)) byId("step").focus({ preventScroll: true }); /* the arrows step again */
        } else {
            tries += !isNone;
            fillWrong(grade);
        }
        if (isRight) showTerms(); /* all that a question kept back */
        reachDown(result);
        drawBar();
        if (state.step === lesson.steps.length - 1) byId("end")?.closest(".end")?.replaceWith(drawEnd(stepNow()));
    }
    const hint = button("hint", () => {
        fill(result, hinted());
        give.hidden = false;
        reachDown(result);
    });
    const [, before, text] = /^(\w+) ?(.*)$/.exec(lesson.answers[n]) || [];
    if (before) {
        say(text);
        give.hidden = false;
        tries = Number(before === "wrong");
        if (tries) fillWrong(gradeOf(check()));
        else fillResult(reveal(), before === "right" && gradeOf(check()));
    }
    return el("form", { class: "question " + question.kind, "data-kind": question.kind, onsubmit: submit,
        "aria-label": `Question ${n + 1}` }, el("p", {}, el("b", {}, "? "), prose(question.ask)),
    el("div", { class: "reply" }, field, el("div", { class: "buttons" }, el("button", { "data-check": true }, "check"), hint, give)), result);
}

const notYet = words => ({ isRight: false, words });
const none = words => ({ ...notYet(words), isNone: true }); /* that is no answer */

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

/* A field for a number, and what the number that was typed is worth. */
function numberKind(label, judgeNumber) {
    const field = numberField(label, 8), check = () => {
        const { x, refused } = typedNumber(field);
        return refused ? none(refused) : judgeNumber(x, field.value);
    };
    return { field, check, said: () => field.value.trim(), say: text => (field.value = text) };
}

const questionKinds = {
    /* Predict a number: its cell is hidden until then. */
    number({ tensor, part, index, wrong }) {
        const t = state.lesson.tape.tensors[tensor], of = part === "grad" ? "g" : "v", x = t[part][index];
        const judgeNumber = (guess, text) => {
            const fewest = fewestDecimals(of, t), isClose = y =>
                Math.abs(guess - y) <= Math.max(0.0005, 0.01 * Math.abs(y)) || isRounding(text, guess, y, fewest);
            return judge(guess, x, isClose, wrong);
        };
        return { ...numberKind("your prediction", judgeNumber), reveal: () => [[numberName(of, t, index), ` is ${bare(x)}.`]] };
    },
    /* Choose all cells of a gradient that are 0: in the table of the step, which is hidden until then (marks.js). */
    zeros({ tensor }) {
        const t = state.lesson.tape.tensors[tensor], all = [...t.grad.keys()], { picks } = state.lesson;
        const isZero = i => t.grad[i] === 0, isChosen = i => picks.has(`g${tensor}.${i}`);
        return {
            field: el("span", { class: "soft" }, "Click the cells. "),
            said: () => all.filter(isChosen).map(i => `g${tensor}.${i}`).join(" "),
            say: () => {}, /* restore has chosen them */
            check() {
                const missing = all.filter(i => isZero(i) && !isChosen(i)).length,
                    extra = all.filter(i => !isZero(i) && isChosen(i)).length;
                if (!all.some(isChosen) && missing) return none("Choose cells of the table first.");
                return missing || extra ? notYet(`Not yet: ${missing} missing, ${extra} too many.`)
                    : { isRight: true, words: "Right." };
            },
            reveal() {
                const zeros = all.filter(isZero), reasons = [...new Set(zeros.map(i => t.zeros.g.get(i)))];
                return [`${zeros.length} of ${all.length} are 0${reasons.length ? ": " + reasons.join("; ") : ""}.`];
            },
        };
    },
    /* How many terms does a gradient have? */
    count(question) {
        const { line, reached } = termsCounted(question), wanted = reached.length;
        return {
            ...numberKind("how many terms", guess => (guess === wanted ? { isRight: true, words: "Right." }
                : notYet(reasonOf(question.wrong, y => guess === y) || "Not yet."))),
            reveal: () => [[`${wanted} terms, one from each of `,
                listed(reached.slice(0, MOST_TERMS).map(j => numberName("v", line.result, j))), wanted > MOST_TERMS && ", …"]],
        };
    },
    choice(question) {
        const { options, answer } = question, name = "choice" + Math.random(),
            inputs = options.map((_, n) => el("input", { type: "radio", name, value: String(n) }));
        return {
            field: el("div", { class: "choices", onmousedown: event => event.preventDefault() },
                options.map((option, n) => el("label", {}, inputs[n], el("span", {}, prose(option))))),
            said: () => String(inputs.findIndex(({ checked }) => checked)),
            say: text => inputs[text] && (inputs[text].checked = true),
            check() {
                if (!inputs.some(input => input.checked)) return none("Choose one first.");
                return inputs[answer].checked ? { isRight: true, words: "Right." } : notYet("Not yet.");
            },
            reveal: () => [rightOption(question)],
        };
    },
};

/* The right option of a question, and why it is right. */
const rightOption = ({ options, answer, why }) =>
    [...prose(options[answer]), /[.!?]$/.test(options[answer]) ? " " : ". ", ...prose(why)];

/* The line that a question counts terms of, and the elements of its result that the number reaches. */
function termsCounted({ line: number, input, index }) {
    const line = state.lesson.tape.lines.find(each => each.line === number);
    return { line, reached: reachedBy(line, input, index) };
}
