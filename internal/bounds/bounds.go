// Package bounds limits the size of texts that callers store with runs, such as labels. Lists of runs and questions repeat these
// texts, so a long text would slow down every list. Journals refuse texts that are too long. Code that receives such texts from a
// caller checks them first.
//
// The package also has Cut, which shortens texts for messages, and Least, which compares limits. All sizes are in bytes.
package bounds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// The limits.
const (
	Labels     = 16  // number of labels that a caller can give to a run, as for metadata in OpenAI's protocols
	LabelName  = 64  // as for metadata in OpenAI's protocols
	LabelValue = 512 // as for metadata in OpenAI's protocols
	Own        = 4   // number of labels that a program can add to the caller's, such as the tenant
	Name       = 512 // name of an ashlar, a pipeline, an intent or a request
	ID         = 512 // ID of a run; servers accept only shorter IDs, because the IDs of inner runs are longer
	Question   = 1 << 20
	Response   = 1 << 20
	Asked      = 10_000 // open questions of a run, and of a tenant that wants to start another run
)

// Least returns the lower of two limits, where nil means unlimited.
func Least[N cmp.Ordered](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// An Error reports that a text is too long. Its message contains the limit and the size.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Cut returns text unchanged if it is at most n bytes long. Otherwise, it returns the first n bytes, without a split character,
// followed by "…".
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// CheckLabels returns an error if a caller gives a run too many labels, or labels that are too long.
func CheckLabels(labels map[string]string) error { return checkLabels(labels, Labels) }

func checkLabels(labels map[string]string, most int) error {
	if n := len(labels); n > most {
		return refuse("%d labels: want at most %d", n, most)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if n := len(name); n > LabelName {
			return refuse("the label %.40q… has a name of %d bytes: want at most %d", name, n, LabelName)
		}
		if n := len(labels[name]); n > LabelValue {
			return refuse("the label %q has a value of %d bytes: want at most %d", name, n, LabelValue)
		}
	}
	return nil
}

// CheckName returns an error if a name or an ID is too long. What says whose name it is, such as "the intent".
func CheckName(what, name string) error {
	if n := len(name); n > Name {
		return refuse("%s %.40q… has %d bytes: want at most %d", what, name, n, Name)
	}
	return nil
}

// CheckID returns an error if the ID of a run is too long.
func CheckID(id string) error {
	if n := len(id); n > ID {
		return refuse("the run id %.40q… has %d bytes: want at most %d", id, n, ID)
	}
	return nil
}

// CheckRun returns an error if any of the caller's texts that a journal stores with a run is too long.
func CheckRun(pipeline string, labels map[string]string) error {
	if err := CheckName("the pipeline", pipeline); err != nil {
		return err
	}
	return checkLabels(labels, Labels+Own)
}

// CheckQuestion returns an error if a question, including its choices, schema and call, is too large.
func CheckQuestion(path string, question any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("question at %s: %w", path, err)
	}
	if n := len(text); n > Question {
		return refuse("the question at %.200s has %d bytes, with its choices, schema and call: want at most %d", path, n, Question)
	}
	return nil
}

// CheckAsked returns an error if there are too many open questions. Whose names their owner, such as "the run".
func CheckAsked(whose string, n int) error {
	if n >= Asked {
		return refuse("%s has %d open questions: want fewer than %d: answer some of them, or cancel their runs", whose, n, Asked)
	}
	return nil
}

// CheckResponse returns an error if a response to a question is too long.
func CheckResponse(response string) error {
	if n := len(response); n > Response {
		return refuse("the response has %d bytes: want at most %d", n, Response)
	}
	return nil
}

const (
	maxLabel    = 80      // maximum size of a label in bytes
	maxLabelled = 4 << 10 // maximum size in bytes of an item that is searched for a label
)

// labels are the fields that usually contain the name of an item, in order of preference.
var labels = [...]string{"name", "title", "path", "id", "key"}

// Label returns a name for a fan-out's item, which is given as JSON: the item itself if it is a string or a number, or the value
// of a field that usually contains a name. For any other item, it returns "".
func Label(item []byte) (label string) {
	if len(item) > maxLabelled {
		return ""
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		label = v
	case json.Number:
		label = v.String()
	case map[string]any:
		for _, field := range labels {
			if label, _ = v[field].(string); label != "" {
				break
			}
		}
	}
	return Cut(label, maxLabel)
}
