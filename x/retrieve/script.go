package retrieve

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unspaced contains the scripts that do not separate words by spaces or, as Korean, do not separate endings from words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// isUnspaced reports whether a letter belongs to an unspaced script. This includes the prolonged sound mark of Katakana, although
// Unicode assigns the mark to no script.
func isUnspaced(r rune) bool { return r > 0x0dff && (r == 'ー' || unicode.In(r, unspaced...)) }

// indexable returns a text in a form whose words a store can find. The text is in lower case, because some database locales
// cannot convert case. Each pair of neighbouring letters in an unspaced script becomes a word, so that a question of at least two
// letters finds them wherever a word begins. Such words are written with the code points of their letters, because databases
// separate marks and letters differently, depending on version and locale. The first letter of a Korean word also becomes a word,
// because nouns of one syllable have endings.
func indexable(text string) string { return pairs(strings.ToLower(text), true) }

func pairs(text string, korean bool) string {
	if strings.IndexFunc(text, isUnspaced) < 0 {
		return text
	}
	var out strings.Builder
	var run []string // letters, each with its marks
	hangul := false
	flush := func() {
		for i, letter := range run {
			if i+1 < len(run) {
				out.WriteString(" " + letter + run[i+1] + "g")
			}
			if len(run) == 1 || i == 0 && hangul && korean {
				out.WriteString(" " + letter + "g")
			}
		}
		if len(run) > 0 {
			out.WriteByte(' ')
		}
		run = run[:0]
	}
	for _, r := range norm.NFC.String(text) {
		mark := unicode.Is(unicode.M, r)
		switch {
		case mark && len(run) > 0:
			run[len(run)-1] += "g" + strconv.FormatInt(int64(r), 16)
		case isUnspaced(r) && unicode.IsLetter(r):
			if len(run) == 0 {
				hangul = unicode.Is(unicode.Hangul, r)
			}
			run = append(run, "g"+strconv.FormatInt(int64(r), 16))
		default:
			flush()
			out.WriteRune(r)
		}
	}
	flush()
	return out.String()
}
