"""card.py - what page-test --sabotage breaks in the cards, one at a time: test_card must see each."""

SABOTAGE = {
    'a wrong line is right': lambda s: s.replace('answer?.verdict === "right"', '!!answer'),
    'a line has no hint': lambda s: s.replace('question && [" ", el("i", {}, typeset(question))]', ''),
    'a line has no mistake': lambda s: s.replace('column > 0 ? (column > formula.length', 'column > 99 ? (column > formula.length').replace(': typeset(why[0].toUpperCase() + why.slice(1)), verdict', ': "", verdict'),
    'a name in front of a formula is an error': lambda s: s.replace('text.replace(/^d[^=]*=/, "")', 'text'),
    'the box keeps a right rule': lambda s: s.replace('ruleBox.id = boxParts.text.value = "";', 'ruleBox.id = "";').replace('fill(boxParts.mirror);\n', ''),
    'a field tells the answer': lambda s: s.replace('enterkeyhint: "done", disabled', 'enterkeyhint: "done", title: step.lines[n].name === "dK" ? "dS\' @ Q" : "", disabled'),
    'Enter leads nowhere': lambda s: s.replace('isRight ? open.find(m => m > n) ?? open[0] : n;', 'n;'),
    'a right line can be changed': lambda s: s.replace('readonly: isRight,', ''),
    'a line has no size': lambda s: s.replace('el("small", {}, sizeOfTable(', 'el("small", {}, String('),
    'what was typed is lost': lambda s: s.replace('oninput: () => drafts.set(key, input.value)', 'oninput: () => {}'),
    'a card is not kept': lambda s: s.replace('localStorage.setItem(storeOf', 'void (storeOf'),
    'a refused store stops the page': lambda s: s.replace('} catch { /* then it stays for this visit */ }', '} finally { /* x */ }'),
    'a card has no reasons': lambda s: s.replace('el("td", {}, prose(why))', 'el("td", {})'),
    'the lesson is printed with its card': lambda s: s.replace('if (printed === "card") return', 'if (printed === "x") return'),
    'a card is saved with its tape': lambda s: s.replace('const down = !isOfCard && ', 'const down = '),
    'once more is not empty': lambda s: s.replace('cardOf(state.lesson).clear();', ''),
    'a phone zooms into a line': lambda s: s.replace('color: var(--ink); font: max(16px, 1rem)/22px', 'color: var(--ink); font: 14px/22px'),
    'a card is too wide for a phone': lambda s: s.replace('.card-line { grid-template-columns: max-content minmax(0, 1fr) 4.6em; gap: 2px 8px; }', '.card-line { min-width: 500px; }'),
    'without the library nothing is said': lambda s: s.replace(': isOff ? `${Live.refused}', ': isOff ? `'),
}
