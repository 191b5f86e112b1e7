package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// A row is a row of a data set, bound to the inputs of a pipeline. Because there may be hundreds of thousands of rows, all values
// of a row are in one string: the id, the inputs and the expected output, each followed by a newline. Canonical JSON contains no
// newlines. Missing values are empty.
type row struct {
	text   string
	labels []string // value of the column Data.Cluster, if set, and of the columns Data.Slices
}

// idSize is the length of a case id: the first half of a SHA-256 over the inputs and the expected output, in hexadecimal.
const idSize = 32

// newRow returns a row with the given inputs and expected output. The expected output is nil if the row has none.
func (set *dataset) newRow(input []json.RawMessage, expected json.RawMessage) row {
	h := sha256.New()
	for i, in := range set.inputs {
		fmt.Fprintf(h, "%q %d ", in.Type.Name(), len(input[i]))
		h.Write(input[i])
	}
	h.Write([]byte("\n"))
	h.Write(expected)
	size := idSize + 1
	for _, value := range append(input, expected) {
		size += len(value) + 1
	}
	var text strings.Builder
	text.Grow(size)
	text.WriteString(hex.EncodeToString(h.Sum(nil))[:idSize])
	text.WriteByte('\n')
	for _, value := range append(input, expected) {
		text.Write(value)
		text.WriteByte('\n')
	}
	return row{text: text.String()}
}

func (r row) id() string { return r.text[:idSize] }

// values returns the inputs followed by the expected output. Missing values are nil.
func (r row) values() (all []json.RawMessage) {
	for value := range strings.Lines(r.text[idSize+1:]) {
		if value = value[:len(value)-1]; value == "" {
			all = append(all, nil)
			continue
		}
		all = append(all, json.RawMessage(value))
	}
	return all
}

// content returns the inputs of a row, combined into one value, and the expected output.
func (set *dataset) content(r row) (input, expected json.RawMessage, err error) {
	values := r.values()
	values, expected = values[:len(set.inputs)], values[len(set.inputs)]
	if len(values) == 1 && values[0] != nil {
		return values[0], expected, nil
	}
	all := map[string]json.RawMessage{}
	for i, in := range set.inputs {
		if values[i] != nil {
			all[in.Type.Name()] = values[i]
		}
	}
	input, err = json.Marshal(all)
	return input, expected, err
}

// slice returns the label of a row for one of Data.Slices.
func (set *dataset) slice(at, i int) string {
	labels := set.rows[at].labels
	return labels[len(labels)-len(set.Slices)+i]
}

// labelled returns the names of the columns that provide the labels of a row, in order.
func (set *dataset) labelled() []string {
	if set.Cluster == "" {
		return set.Slices
	}
	return append([]string{set.Cluster}, set.Slices...)
}
