"""card.py - what page-test --sabotage breaks in the cards, one at a time: test_card must see each."""

SABOTAGE = {
    'a wrong line is right': lambda s: s.replace('answer?.verdict === "right"', '!!answer'),
    'a line has no hint': lambda s: s.replace('question && [" ", el("i", {}, typeset(question))]', 'false'),
    'a line has no mistake': lambda s: s.replace('typeset(why[0].toUpperCase() + why.slice(1))', '""'),
    'a name in front of a formula is an error': lambda s: s.replace('text.replace(/^d[^=]*=/, "")', 'text'),
    'the box keeps a right rule': lambda s: s.replace('mistakes.hidden = true;\n    fill(mistakes);', 'mistakes.hidden = true;'),
    'a field tells the answer': lambda s: s.replace('"aria-label": `write ${plain(line.name)}`', '"aria-label": `write ${plain(line.name)}`, title: line.name === "dK" ? "dS\' @ Q" : ""'),
    'Enter leads nowhere': lambda s: s.replace('chosenLines.set(lesson.name, next?.name);', 'chosenLines.set(lesson.name, lines[lines.length - 1].name);'),
    'a right line stays open': lambda s: s.replace('isRightLine(judged.get(line.name)) ? [typesetRule', 'false ? [typesetRule'),
    'a line has no size': lambda s: s.replace('is ${sizeOfTable(', 'is ${String('),
    'what was typed is lost': lambda s: s.replace('if (line) drafts.set(line.key, text.value);', ''),
    'a card is not kept': lambda s: s.replace('localStorage.setItem(', 'void ('),
    'a refused store stops the page': lambda s: s.replace('} catch {\n        isStoreRefused = true;\n    }', '} finally {}'),
    'a card has no letters of papers': lambda s: s.replace('el("p", { class: "text small" }, drawLetters(state.lesson)), ', ''),
    'a card has no reasons': lambda s: s.replace('&& prose(line.why)', '&& ""'),
    'the lesson is printed with its card': lambda s: s.replace('if (printed === "card") return', 'if (printed === "x") return'),
    'a card is saved with its tape': lambda s: s.replace('const down = !isOfCard && ', 'const down = '),
    'once more is not empty': lambda s: s.replace('forget(state.lesson, "card ");', ''),
    'a phone zooms into a line': lambda s: s.replace('font: max(17px, 1.125rem)/23px', 'font: 14px/23px'),
    'a card is too wide for a phone': lambda s: s.replace('.keep thead { display: none; }', '.keep table { min-width: 500px !important; }'),
    'without the library nothing is said': lambda s: s.replace(': isOff ? `${Live.refused}', ': isOff ? `'),
}
