/* play.js - the playground of the page: trains recall (../recall/model.h) some steps at a time, and draws its loss and
 * its attention. Every number comes from the library (play.h says what it is asked and what it answers).
 *
 * The address has the settings that are not the usual ones, and the step: #play&attention=additive&seed=3&step=400. */
"use strict";

(() => {
    const USUAL = { attention: "dot", seed: "1", pairs: "10", lr: "0.2", "no-scale": "0", "no-mask": "0" };
    const GOAL = 1000, MOST_STEPS = 10000;
    const CHUNK_TIME = 60, MOST_AT_ONCE = 64; /* milliseconds between two pictures; steps */
    const SLOW_STEPS = 200, SLOW_TIME = 100;  /* while the loss falls, one step after the other; milliseconds for each */

    let live = null;              /* the library */
    let settings = { ...USUAL };  /* what the fields show */
    let run = null;               /* {settings, step, losses, accuracy, found, map}; null: there is none */
    let goal = 0, chunk = 1;      /* steps: trains up to the goal; so many at once */
    let isWatched = false;        /* the reader has pressed Train: a training to a given step is never slow */
    let pictured = null;          /* the lesson whose tape is on top */
    let timer = 0, question = 0;  /* the row of the map whose weights are listed */
    let cells = [], bars = [];    /* what is drawn anew after each chunk */

    const isSlow = () => isWatched && run.step < SLOW_STEPS && byId("play-speed").value === "slow";
    const isTraining = () => run !== null && goal > run.step;
    const button = name => byId("play-buttons").querySelector(`[data-play="${name}"]`);
    const decimals = (x, n) => (x === null ? "0" : x.toFixed(n)); /* null is masked: exactly 0 */

    /* ---- training ---- */

    function say(words, isWrong) {
        byId("play-said").textContent = words;
        byId("play-said").classList.toggle("wrong", isWrong === true);
    }

    /* Asks the library. After an error of training there is no run; other errors leave it as it is. */
    function ask(request) {
        const answer = live.answer("play " + request);
        if (!answer.error) return answer;
        if (request.startsWith("train")) {
            run = null;
            stop();
        }
        const sentence = answer.error.replace(/^lr /, "learning rate ");
        say(`${sentence[0].toUpperCase()}${sentence.slice(1)}.`, true);
        return null;
    }

    function take({ step, losses, accuracy, found, map }) {
        for (const loss of losses) run.losses.push(loss);
        Object.assign(run, { step, accuracy, found, map });
    }

    /* The same settings give the same numbers. */
    function start() {
        stop();
        say("");
        const lines = Object.entries(settings).map(([key, value]) => `\n${key} ${value}`);
        const answer = ask("begin" + lines.join(""));
        if (!answer) return keepRun();
        run = { settings: { ...settings }, losses: [] };
        take(answer);
        question = Math.min(question, run.map.queries.length - 1);
        draw();
        pause();
    }

    /* A setting was refused: the run before stays, paused; if there is no run, the usual run begins. */
    function keepRun() {
        const words = byId("play-said").textContent;
        settings = { ...(run ? run.settings : USUAL) };
        if (!run) start();
        say(words, true);
        draw();
        writeAddress();
    }

    function train(n) {
        const answer = ask(`train ${n}`);
        if (answer) take(answer);
    }

    /* Trains in chunks, so that the browser draws the page and handles input between two chunks. */
    function trainTo(step, watched = false) {
        if (!run) return;
        isWatched = watched;
        goal = Math.min(step, MOST_STEPS);
        if (isTraining()) say("Training.");
        writeAddress();
        drawButtons();
        clearTimeout(timer);
        timer = setTimeout(tick);
    }

    function tick() {
        if (!isTraining() || document.hidden) return;
        const begun = performance.now(), n = isSlow() ? 1 : Math.min(chunk, goal - run.step);
        train(n);
        if (!run) return draw();
        const fits = Math.round(n * CHUNK_TIME / Math.max(1, performance.now() - begun));
        chunk = Math.max(1, Math.min(2 * chunk, fits, MOST_AT_ONCE));
        if (isTraining()) timer = setTimeout(tick, isSlow() ? SLOW_TIME - (performance.now() - begun) : 0);
        else if (run) pause();
        draw();
    }

    function stop() {
        clearTimeout(timer);
        goal = 0;
    }

    function pause() {
        stop();
        const { step, losses, accuracy } = run, loss = losses.length ? `loss ${bare(losses[step - 1])}, ` : "";
        say(`Step ${step}: ${loss}${percent(accuracy)} of the answers are right.`);
        writeAddress();
        drawButtons();
        drawTape();
    }

    /* The gradient of this moment as a lesson; null if the library stops. */
    function recording() {
        const answer = ask("record"), [lesson] = answer ? answer.lessons : [];
        return lesson ? { ...lesson, title: `recall, ${run.settings.attention}, step ${run.step}` } : null;
    }

    /* Most tables of this model have 32 or 100 columns. Those of a row for each question and a column for each pair can be read. */
    function wordsOfSizes() {
        const step = pictured && pictured.steps.find(({ kind, unit }) => kind === "backward" && unit.result.name === "attention_weights");
        return step && [". Many tables here have 32 or 100 columns, and scroll. Begin with one that fits: ",
            el("a", { href: `#recall/${step.id}` }, "the gradient of the scores"), "."];
    }

    /* at: the tensor whose step is wanted first. */
    function record(at) {
        if (isTraining()) pause();
        const lesson = recording(), back = el("span", {}, el("a", { href: address(false) }, "Back to the playground"), wordsOfSizes());
        if (lesson) showRecording(lesson, back, at);
    }

    /* The tape of this moment on top, with all its numbers; a table leads to its step. */
    function drawTape() {
        if (!run || isTraining() || !isPlaying()) return;
        const lesson = recording();
        if (!lesson) return;
        pictured = prepare(lesson);
        plan(pictured);
        drawPictured();
    }

    function drawPictured() {
        buildMachine(pictured, t => record(t.number));
        updateMachine();
    }

    const press = {
        train: () => (isTraining() ? pause() : trainTo(MOST_STEPS, true)),
        one() {
            stop();
            train(1);
            if (run) pause();
            draw();
        },
        goal: () => trainTo(GOAL),
        again: start,
        record: () => record(),
    };

    /* ---- the address and the fields ---- */

    function address(withStep) {
        const pairs = Object.entries(settings).filter(([key, value]) => value !== USUAL[key]);
        if (withStep && run && run.step) pairs.push(["step", run.step]);
        return "#play" + pairs.map(([key, value]) => `&${key}=${encodeURIComponent(value)}`).join("");
    }

    /* During training the address has no step: a reader who comes back continues the run. */
    function writeAddress() {
        if (isPlaying()) replaceAddress(address(!isTraining()));
    }

    /* A value is one line of a request. Additive attention has no scale. */
    function readSettings(wanted) {
        const read = Object.keys(USUAL).map(key => [key, (wanted.get(key) ?? USUAL[key]).replace(/\s+/g, " ").trim()]);
        const all = Object.fromEntries(read);
        return { ...all, "no-scale": all.attention === "additive" ? "0" : all["no-scale"] };
    }

    function readStep(text) {
        if (text === null) return 0;
        if (/^\d+$/.test(text) && Number(text) <= MOST_STEPS) return Number(text);
        say(`Step is "${text}": it must be an integer from 0 to ${MOST_STEPS}.`, true);
        return 0;
    }

    /* An address without settings and step keeps the run. Any other address begins a new run, unless it has the
     * settings of the run and no earlier step. */
    function readAddress() {
        const wanted = new URLSearchParams(location.hash.slice(1)), step = wanted.get("step");
        const isBare = [...wanted.keys()].every(key => key === "play");
        const asked = isBare ? settings : readSettings(wanted);
        const isSame = run && Object.keys(USUAL).every(key => run.settings[key] === asked[key]);
        settings = asked;
        if (!isSame || (step !== null && Number(step) < run.step)) start();
        else draw();
        const to = readStep(step);
        if (run && to > run.step) trainTo(to);
        else if (run && !byId("play-said").classList.contains("wrong")) pause();
    }

    async function open() {
        if (!isPlaying()) return stop();
        live = await Live.load();
        byId("play-off").textContent = live ? "" : `The playground is off. ${Live.refused}`;
        byId("play-on").hidden = !live;
        if (live && isPlaying()) readAddress();
    }

    const fields = () => byId("play-settings").elements;

    /* The boxes say what the model has; the settings say what it lacks. */
    function changeSettings() {
        const wanted = new URLSearchParams([...fields()].map(field => [field.name,
            field.type === "checkbox" ? String(Number(!field.checked)) : field.value.trim().replace(",", ".")]));
        settings = readSettings(wanted);
        start();
    }

    function drawFields() {
        for (const field of fields())
            if (field.type === "checkbox") field.checked = settings[field.name] === "0";
            else field.value = settings[field.name];
        const scale = fields()["no-scale"], isAdditive = settings.attention === "additive";
        scale.disabled = isAdditive;
        scale.checked = scale.checked && !isAdditive;
        scale.parentElement.title = isAdditive ? "additive attention does not divide its scores" : "";
    }

    /* ---- drawing ---- */

    function draw() {
        if (!isPlaying()) return;
        drawFields();
        drawButtons();
        byId("play-results").hidden = !run;
        if (!run) return;
        const { step, losses, accuracy, found } = run, loss = losses[step - 1];
        byId("play-step").textContent = step;
        byId("play-loss").textContent = losses.length ? bare(loss) : "\u00b7";
        byId("play-loss").title = losses.length ? full(loss) : "no step was made yet";
        byId("play-accuracy").textContent = percent(accuracy);
        byId("play-found").textContent = percent(found);
        drawCurve();
        if (run.cellsOf !== byId("play-map").clientWidth) buildMap();
        drawMap();
    }

    function drawButtons() {
        const isLast = !run || run.step >= MOST_STEPS;
        button("train").textContent = isTraining() ? "Pause" : "Train";
        button("train").disabled = button("one").disabled = isLast;
        button("goal").disabled = isLast || run.step >= GOAL;
        button("record").disabled = !run;
        byId("picture").classList.toggle("stale", isTraining()); /* its tape is that of the last pause */
        if (document.activeElement.disabled) button(isLast ? "again" : "train").focus();
    }

    /* ---- the curve of the loss ---- */

    const POINTS = 400;

    /* Each point is a step, or the mean of several. */
    function pointsOf(losses) {
        const each = Math.ceil(losses.length / POINTS), points = [];
        for (let n = 0; n < losses.length; n += each) {
            const some = losses.slice(n, n + each);
            points.push({ step: n + (some.length + 1) / 2, loss: sum(some) / some.length });
        }
        return { points, each };
    }

    /* Where the numbers of the axes stand, and y as a share of the height. */
    function scaleOf(points, isLog) {
        const finite = points.map(({ loss }) => loss).filter(loss => loss > 0);
        if (isLog) {
            const low = Math.floor(Math.log10(Math.min(0.1, ...finite))),
                high = Math.max(1, Math.ceil(Math.log10(Math.max(1, ...finite))));
            const label = n => (n < -4 ? `1e${n}` : String(Number((10 ** n).toFixed(4))));
            const ticks = Array.from({ length: high - low + 1 }, (_, n) => [10 ** (low + n), label(low + n)]);
            const share = loss => (loss > 0 ? Math.max(0, (Math.log10(loss) - low) / (high - low)) : 0);
            return { ticks, share };
        }
        return linearScale(0, Math.max(5, ...finite), 6);
    }

    function drawCurve() {
        const figure = byId("play-curve"), { losses, step } = run, { points, each } = pointsOf(losses);
        const width = Math.max(280, figure.clientWidth), height = width < 500 ? 200 : innerHeight < 800 ? 190 : 260;
        const scale = scaleOf(points, byId("play-log").checked), curves = [{ name: "right", points }];
        const label = !losses.length ? "The loss: no step was made yet"
            : `The loss: ${bare(losses[0])} at step 1, ${bare(losses[step - 1])} at step ${step}`;
        const xLabel = each > 1 ? `step (a point is the mean of ${each})` : "step";
        const steps = ticksFor(0, Math.max(100, step), 5);
        const { chart, x, y } = drawChart({ width, height, label, curves, steps, xLabel, ...scale });
        const last = points[points.length - 1];
        if (last) chart.append(svg("circle", { cx: x(last.step), cy: y(last.loss), r: 3 }));
        figure.replaceChildren(chart);
    }

    /* ---- the map: a row for each question, a column for each pair ---- */

    const NARROW = 31, WIDE = 46; /* pixels: a cell */

    /* Too many pairs for the page stand in several tables, one under the other. */
    function buildMap() {
        const { queries, keys, right } = run.map, width = byId("play-map").clientWidth, tables = [];
        const heads = isNarrow() ? 46 : 35; /* pixels: the column of questions, which a finger meets */
        const most = Math.max(1, Math.floor((width - heads) / NARROW));
        const each = Math.ceil(keys.length / Math.ceil(keys.length / most));
        const cell = Math.min(WIDE, Math.floor((width - heads) / each));
        const head = i => el("button", { type: "button", "data-question": i, onclick: () => choose(i),
            "aria-label": `question ${queries[i]}: list its weights` }, queries[i]);
        const numberOf = (i, j) => el("td", { class: right[i] === j && "answer", "--cell": cell + "px" });
        run.cellsOf = width;
        cells = queries.map(() => []);
        for (let from = 0; from < keys.length; from += each) {
            const places = keys.map((_, j) => j).slice(from, from + each);
            const rows = queries.map((query, i) => el("tr", {},
                el("th", { scope: "row" }, from ? query : head(i)), places.map(j => (cells[i][j] = numberOf(i, j)))));
            tables.push(el("table", { "aria-label": "weights" },
                el("tr", {}, el("th"), places.map(j => el("th", { scope: "col" }, keys[j]))), rows));
        }
        byId("play-map").replaceChildren(el("h3", {}, "The weights of one sequence"),
            el("p", { class: "soft" }, "A row is a question, a column a pair. Outlined: the weight on the right pair" +
                (run.map.weights.includes(null) ? "; hatched: masked." : ".")), ...tables);
        buildBars();
    }

    function choose(i) {
        question = i;
        buildBars();
        drawMap();
    }

    /* The weights of one question. */
    function buildBars() {
        const { queries, keys, right } = run.map;
        bars = keys.map((key, j) => {
            const bar = el("i"), number = el("td", { class: "figure" }), words = el("span");
            const row = el("tr", { class: j === right[question] && "answer" }, el("th", { scope: "row" }, key), number,
                el("td", { class: "bar" }, bar, words));
            return { row, bar, number, words };
        });
        const pair = keys[right[question]];
        byId("play-bars").replaceChildren(el("h3", {}, `Question ${queries[question]}`),
            el("p", { class: "soft" }, `The right pair is ${pair}: the answer is ${pair.split(":")[1]}.`),
            el("table", {}, bars.map(({ row }) => row)));
    }

    /* A weight in words. A sequence has as many pairs as questions; the pairs after them are old pairs. */
    function wordsOf(j, weight, largest) {
        const { queries, right } = run.map, isRight = j === right[question];
        if (weight === null) return "masked";
        if (isRight) return weight === largest ? "the right pair, found" : "the right pair";
        return [j >= queries.length && "an old pair", weight === largest && "the largest"].filter(Boolean).join(", ");
    }

    function drawMap() {
        const { queries, keys, weights } = run.map, row = i => weights.slice(i * keys.length, (i + 1) * keys.length);
        queries.forEach((query, i) => row(i).forEach((weight, j) => {
            const td = cells[i][j], isAnswer = j === run.map.right[i];
            td.textContent = decimals(weight, 2);
            td.className = `${weight === null ? "zero masked" : "pos"} ${isAnswer ? "answer" : ""}`;
            td.style.setProperty("--strength", strengthOf(weight, 1));
            td.title = `${query} to ${keys[j]}: ${weight === null ? "0, masked" : full(weight)}` +
                (isAnswer ? ", the right pair" : "");
        }));
        for (const each of byId("play-map").querySelectorAll("button"))
            each.setAttribute("aria-pressed", Number(each.dataset.question) === question);
        const chosen = row(question), largest = Math.max(...chosen);
        bars.forEach(({ bar, number, words }, j) => {
            number.textContent = decimals(chosen[j], 4);
            number.className = `figure ${chosen[j] === null ? "masked" : ""}`;
            number.title = chosen[j] === null ? "0" : full(chosen[j]);
            bar.className = "pos";
            bar.style.setProperty("--share", chosen[j] ?? 0);
            words.textContent = wordsOf(j, chosen[j], largest);
        });
    }

    for (const each of byId("play-buttons").children) each.addEventListener("click", press[each.dataset.play]);
    byId("play-settings").addEventListener("change", changeSettings);
    byId("play-settings").addEventListener("submit", event => event.preventDefault());
    byId("play-log").addEventListener("change", draw);
    addEventListener("hashchange", open);
    addEventListener("resize", () => {
        draw();
        if (isPlaying() && pictured) drawPictured();
    });
    document.addEventListener("visibilitychange", () => isTraining() && trainTo(goal, isWatched));
    open();
})();
