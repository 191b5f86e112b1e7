package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/regular"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/llm"
)

// Config specifies the server and the requests to it. With the zero Config, every invocation fails with "runtime/unavailable".
type Config struct {
	URL string // http or https
	// Header contains headers that are sent with every request to the server of the URL.
	Header map[string]Value
	// Client sends the requests. Nil means a client with http.DefaultTransport. A copy of Client with another CheckRedirect is
	// used.
	Client *http.Client
	Scope  call.Scope // limits the server and the targets of its redirects; if Net is nil, redirects to other servers fail
	// MaxBody is the maximum size of an answer, in bytes; 8 MiB by default.
	MaxBody int
}

// A Value is the value of a header, given as text or by the place in which it is stored. Exactly one field must be set.
type Value struct {
	Text string `json:"text,omitempty"`
	Env  string `json:"env,omitempty"`  // the name of an environment variable
	File string `json:"file,omitempty"` // a file that contains the value on one line
}

// Check returns an error if the configuration is invalid. Variables and files are read only when a request is sent.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The error from url.Parse would show the URL.
		return errors.New("rest: URL is not an http or https URL with a host")
	}
	if c.MaxBody < 0 {
		return errors.New("rest: MaxBody is negative: want zero for the default")
	}
	for name, v := range c.Header {
		set := 0
		for _, s := range []string{v.Text, v.Env, v.File} {
			if s != "" {
				set++
			}
		}
		if !transport.IsHeader(name) || set != 1 {
			return fmt.Errorf("rest: header %q: want a name, and one of Text, Env and File", name)
		}
	}
	return errors.Join(c.Scope.Check(), c.Scope.Net.Check(u))
}

// read returns the value of the header. The error contains the name of the variable or file, but never the value.
func (v Value) read() (llm.Secret, error) {
	text := v.Text
	switch {
	case v.Env != "":
		if text = os.Getenv(v.Env); text == "" {
			return "", fmt.Errorf("the variable %s is not set", v.Env)
		}
	case v.File != "":
		data, err := regular.Read(v.File, regular.Config)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(string(data))
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("the value is not one line of text")
	}
	return llm.Secret(text), nil
}
