package kinds

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/schema"
)

// A Place is something outside the configuration that a field refers to: an address, a program, a key, a variable or a file. The
// methods of Reader that read such fields record the place, so that the user is asked to trust every such field.
type Place struct {
	Of   string // name of the part that contains the field; see Reader.Of
	In   string // path of the field
	Does string // how a command uses the place, such as "sends requests to"
	At   string // the place in human-readable form, without secrets
}

// Of calls read for a part of the configuration, such as a capability. Places that read records are listed under the name of the
// part. Of returns the part's secrets.
func (r *Reader) Of(of string, read func()) []Secret {
	r.of, r.Secrets = of, nil
	read()
	r.of = ""
	return r.Secrets
}

// Reach records a place.
func (r *Reader) Reach(field form.Value, does, at string) {
	r.Places = append(r.Places, Place{r.of, field.Path(), does, at})
}

// A Contact is an address that receives data, with the keys that are sent to it.
type Contact struct {
	Of      string // name of the part that sends data to the contact; see Reader.Of
	Does    string // what is sent to it, such as "search sends documents and questions to"
	At      string // the address in human-readable form, without secrets
	Secrets []Secret
}

// Contact records that data is sent to an address.
func (r *Reader) Contact(of, does, address string, secrets []Secret) {
	r.Contacts = append(r.Contacts, Contact{of, does, Host(address), secrets})
}

// String returns a description of the contact on one line.
func (c Contact) String() string {
	line := strings.TrimRight(c.Does+" "+c.At, " ")
	for i, s := range c.Secrets {
		line += []string{", with the key in ", " and in "}[min(i, 1)] + s.Place()
	}
	return line
}

// reachFile records a file as a place, unless the file belongs to the project.
func (r *Reader) reachFile(field form.Value, file string) {
	if rel, err := filepath.Rel(r.Dir, file); err != nil || !filepath.IsLocal(rel) {
		r.Reach(field, "uses the file", file)
	}
}

// Host returns the scheme and host of an address, without its other parts, because they may be secret. For the address of a
// database, it returns everything but the password, because the parameters may name more hosts. For any other text, it returns
// "".
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

// Whole returns a command and all of its arguments in shell syntax.
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

// An Emitter is the Detail of a leaf that emits the result of a plan. Evaluations compare scorers with its schemas.
type Emitter interface {
	// Emits returns the schema of the emitted value under the key "", and the schemas of its fields under their paths, such as
	// ".order.total". A nil schema accepts any value.
	Emits() map[string]*schema.Schema
}
