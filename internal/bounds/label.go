package bounds

import (
	"bytes"
	"encoding/json"
)

const (
	maxLabel    = 80      // bytes of a label
	maxLabelled = 4 << 10 // bytes of an item that is searched for one
)

// labels are the fields that may name an item, the first one first.
var labels = [...]string{"name", "title", "path", "id", "key"}

// Label returns the name of an item of a fan-out, given as JSON: the item itself if it is a text or a
// number, or a field with a usual name for names. It is empty for other items.
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
