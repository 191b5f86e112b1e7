package kinds

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/schema"
)

// A Place is something outside the configuration that a field names: an address, a program, a key, a variable or a file. The
// methods of Reader that read such fields note it, so that trust covers every field of these types.
type Place struct {
	Of   string // as Reader.Of has it
	In   string // the path of the field
	Does string // how a command uses it, such as "sends requests to"
	At   string // for people, without secrets
}

// Of reads a part of a configuration that is listed on its own, such as a capability, and returns its secrets.
func (r *Reader) Of(of string, read func()) []Secret {
	r.of, r.Secrets = of, nil
	read()
	r.of = ""
	return r.Secrets
}

// Reach notes a place.
func (r *Reader) Reach(field form.Value, does, at string) {
	r.Places = append(r.Places, Place{r.of, field.Path(), does, at})
}

// A Contact is an address that gets data, with the keys for it.
type Contact struct {
	Of      string // as Reader.Of has it
	Does    string // such as "search sends documents and questions to"
	At      string // for people, without secrets
	Secrets []Secret
}

// Contact notes the contact to an address.
func (r *Reader) Contact(of, does, address string, secrets []Secret) {
	r.Contacts = append(r.Contacts, Contact{of, does, Host(address), secrets})
}

// String returns a line for people.
func (c Contact) String() string {
	line := strings.TrimRight(c.Does+" "+c.At, " ")
	for i, s := range c.Secrets {
		line += []string{", with the key in ", " and in "}[min(i, 1)] + s.Place()
	}
	return line
}

// reachFile notes a file, unless it belongs to the project.
func (r *Reader) reachFile(field form.Value, file string) {
	if rel, err := filepath.Rel(r.Dir, file); err != nil || !filepath.IsLocal(rel) {
		r.Reach(field, "uses the file", file)
	}
}

// Host returns the scheme and host of an address. A database address is returned whole, without its password, because its
// parameters may name more hosts. Otherwise Host returns "". The rest of an address may be a secret.
func Host(address string) string {
	if redact.IsDatabase(address) {
		return redact.Database(address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Whole returns a command with its arguments, in shell syntax.
func Whole(argv []string) string {
	var words []string
	for _, w := range argv {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`;&|()<>*?[]{}!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// An Emitter is the Detail of a leaf that emits the result of a plan. Package eval compares scorers with its schemas.
type Emitter interface {
	// Emits returns the schema of the emission under "", and its fields' schemas under their paths, such as ".order.total". A nil
	// schema accepts anything.
	Emits() map[string]*schema.Schema
}
