package schema

import (
	"fmt"
	"reflect"

	"github.com/stonelayer/stone/internal/fields"
)

// loss returns an error if encoding/json would silently lose data of a struct, and otherwise nil. The argument where is the path of
// the field in the message.
func loss(t reflect.Type, where string) error {
	written, hidden := len(fieldsOf(t)), ""
	seen := map[reflect.Type]bool{}
	var look func(t reflect.Type) error
	look = func(t reflect.Type) error {
		if seen[t] {
			return nil
		}
		seen[t] = true
		names := map[string]string{} // Go field names by their names in JSON
		for n := range t.NumField() {
			sf := t.Field(n)
			f, inner := fields.At(t, n)
			switch {
			case inner != nil:
				if err := look(inner); err != nil {
					return err
				}
			case f.JSON == "":
				if !sf.IsExported() && sf.Name != "_" {
					hidden = sf.Name
				}
			case names[f.JSON] != "" && f.Tagged:
				return fmt.Errorf("%s: the fields %s and %s are both %q in JSON, which then has neither; rename one",
					where, names[f.JSON], sf.Name, f.JSON)
			case f.Tagged:
				names[f.JSON] = sf.Name
			}
		}
		return nil
	}
	if err := look(t); err != nil {
		return err
	}
	if written == 0 && hidden != "" {
		return fmt.Errorf("%s: no field of %s is in its JSON, since none is exported; write %q with a capital letter", where, t, hidden)
	}
	return nil
}
