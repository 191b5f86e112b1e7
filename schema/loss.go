package schema

import (
	"fmt"
	"reflect"
)

// loss says what of a struct no JSON would hold although nobody says so: nil if nothing is lost.
// Where is the trail of fields for the message.
func loss(t reflect.Type, where string) error {
	written, hidden := len(fieldsOf(t)), ""
	seen := map[reflect.Type]bool{}
	var look func(t reflect.Type) error
	look = func(t reflect.Type) error {
		if seen[t] {
			return nil
		}
		seen[t] = true
		names := map[string]string{} // of the Go field, by its name in JSON
		for n := range t.NumField() {
			sf := t.Field(n)
			f, inner := embedded{Type: t}.field(n)
			switch {
			case inner.Type != nil:
				if err := look(inner.Type); err != nil {
					return err
				}
			case f.name == "":
				if !sf.IsExported() && sf.Name != "_" {
					hidden = sf.Name
				}
			case names[f.name] != "" && f.tagged:
				return fmt.Errorf("%s: the fields %s and %s are both %q in JSON, which then holds neither; give one another name",
					where, names[f.name], sf.Name, f.name)
			case f.tagged:
				names[f.name] = sf.Name
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
