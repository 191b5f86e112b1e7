package frontend

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/ask"
)

// HTTP is a frontend over HTTP. It posts every question to a URL as the JSON of [Posted]. The
// server may answer at once, with {"response":"yes","by":"ada"} in its response, or later, by
// a POST of the same JSON to the question's Answer address, which HTTP serves as an
// http.Handler. The field by says who answered, if the server knows:
//
//	people := &frontend.HTTP{URL: "https://example.org/questions", Base: "https://runs.example.org/answers"}
//	http.Handle("/answers/", http.StripPrefix("/answers", people))
//
// The last element of an Answer address names the run and the path, signed with Key:
// everyone who has the address may answer. With a Key that is stored, addresses outlive the
// process; an answer to a question for which no run waits in this process goes to Late. A GET
// of the root with ?run=ID and the run's Token lists the open questions of that run.
//
// An HTTP may serve any number of runs and is safe for concurrent use; its fields must not
// change after its first use.
type HTTP struct {
	// URL is where questions are posted. If it is empty, nothing is posted, and Open
	// lists the questions within the process.
	URL string
	// Base is the address of the handler as others reach it.
	Base string
	// Key signs the Answer addresses and tokens. It has at least 16 bytes. Nil means a
	// random key, whose addresses are valid until the process ends.
	Key []byte
	// Late takes answers to questions for which no run waits in this process; journal.Answer
	// records them in a store. Nil rejects them.
	Late func(ctx context.Context, run, path string, a ask.Answer) error
	// Header is sent with every question, such as {"Authorization": "…"}. Its values
	// appear neither in errors nor in a printed HTTP.
	Header map[string]string
	// Client posts; nil is one with a timeout of 30 seconds that follows no
	// redirect, which would carry the headers to another host.
	Client *http.Client
	// Tries is how often posting a question is tried; 0 means 4. The pause between two
	// tries starts at one second and doubles.
	Tries int

	mu     sync.Mutex
	open   map[string]waiting
	random []byte // the key if there is no Key
}

type waiting struct {
	posted Posted
	answer chan<- ask.Answer
}

// Posted is the JSON of a question.
type Posted struct {
	Run     string          `json:"run"`
	Path    string          `json:"path"`
	Name    string          `json:"name"`
	Text    string          `json:"text"`
	Choices []string        `json:"choices,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Problem string          `json:"problem,omitempty"`
	Answer  string          `json:"answer,omitempty"` // the address to which the answer is posted
}

// answered is an answer on the wire. An empty response cancels the question.
type answered struct {
	Response *string `json:"response"`
	By       string  `json:"by"`
}

// read returns the answer, or nil if there is none.
func (a answered) read() (*ask.Answer, error) {
	if len(a.By) > ask.MaxBy {
		return nil, fmt.Errorf("the field by has %d bytes: want at most %d", len(a.By), ask.MaxBy)
	}
	if a.Response == nil {
		return nil, nil
	}
	return &ask.Answer{Response: *a.Response, By: a.By}, nil
}

const (
	defaultTries = 4
	firstPause   = time.Second
	maxAnswer    = 1 << 20          // bytes of an answer
	readTime     = 10 * time.Second // for the body of an answer
	minKey       = 16
)

var defaultClient = &http.Client{
	Timeout:       30 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ask implements ask.Frontend.
func (h *HTTP) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	if err := h.checkKey(); err != nil {
		return ask.Answer{}, err
	}
	key, answer := h.address(q.RunID, q.Path), make(chan ask.Answer, 1)
	posted := Posted{Run: q.RunID, Path: q.Path, Name: q.Name, Text: q.Text, Choices: q.Choices, Problem: q.Problem}
	if q.Schema != nil {
		posted.Schema = q.Schema.JSON()
	}
	posted.Answer = strings.TrimSuffix(h.Base, "/") + "/" + key
	h.mu.Lock()
	if h.open == nil {
		h.open = map[string]waiting{}
	}
	_, twice := h.open[key]
	if !twice {
		h.open[key] = waiting{posted, answer}
	}
	h.mu.Unlock()
	if twice {
		return ask.Answer{}, fmt.Errorf("question %q at %q of run %q is open already", q.Name, q.Path, q.RunID)
	}
	defer h.close(key)

	if h.URL != "" {
		if a, err := h.post(ctx, posted); err != nil {
			return ask.Answer{}, err
		} else if a != nil {
			return *a, nil
		}
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return ask.Answer{}, ctx.Err()
	}
}

// Format writes the host to which questions go, for every verb: the rest of the URL
// and the headers may hold secrets.
func (h *HTTP) Format(f fmt.State, _ rune) {
	host := "nowhere"
	if u, err := url.Parse(h.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	fmt.Fprintf(f, "frontend.HTTP(to %s)", host)
}

// LogValue returns the same text as Format, for log/slog.
func (h *HTTP) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(h)) }

// close removes a question and returns it, and whether it was open.
func (h *HTTP) close(key string) (waiting, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.open[key]
	delete(h.open, key)
	return w, ok
}

// Open lists the questions that wait for an answer, by run and path.
func (h *HTTP) Open() []Posted {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Posted
	for _, w := range h.open {
		all = append(all, w.posted)
	}
	slices.SortFunc(all, func(a, b Posted) int {
		return cmp.Or(strings.Compare(a.Run, b.Run), strings.Compare(a.Path, b.Path))
	})
	return all
}

// post sends the question, with retries, and returns the answer of the response, or nil if it
// has none.
func (h *HTTP) post(ctx context.Context, q Posted) (*ask.Answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("question %q: %w", q.Name, err)
	}
	pause := firstPause
	for try := 1; ; try++ {
		a, again, err := h.send(ctx, body)
		if err == nil || !again || try >= cmp.Or(h.Tries, defaultTries) {
			if err != nil {
				err = fmt.Errorf("question %q could not be posted, tried %d times: %w", q.Name, try, err)
			}
			return a, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		pause *= 2
	}
}

// send posts once and reports whether a retry makes sense.
func (h *HTTP) send(ctx context.Context, body []byte) (given *ask.Answer, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h.Header {
		req.Header.Set(name, value)
	}
	client := h.Client
	if client == nil {
		client = defaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		var where *url.Error // its text has the address, which may contain a secret
		if errors.As(err, &where) {
			err = where.Err
		}
		return nil, ctx.Err() == nil, err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return nil, res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500, fmt.Errorf("status %s", res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, true, err
	}
	var a answered
	if json.Unmarshal(text, &a) != nil {
		return nil, false, nil // some other acknowledgement
	}
	given, err = a.read()
	return given, false, err
}

// checkKey reports a Key that is short enough to be guessed.
func (h *HTTP) checkKey() error {
	if n := len(h.Key); n > 0 && n < minKey {
		return fmt.Errorf("frontend.HTTP: Key has %d bytes: want %d or more", n, minKey)
	}
	return nil
}

// sign returns a signature of words, of 128 bits.
func (h *HTTP) sign(words ...string) []byte {
	key := h.Key
	if len(key) == 0 {
		h.mu.Lock()
		if h.random == nil {
			h.random = []byte(rand.Text())
		}
		key = h.random
		h.mu.Unlock()
	}
	m := hmac.New(sha256.New, key)
	for _, w := range words {
		fmt.Fprintf(m, "%d:%s", len(w), w)
	}
	return m.Sum(nil)[:16]
}

var encoding = base64.RawURLEncoding

// address returns the last element of the address of a question.
func (h *HTTP) address(run, path string) string {
	question := encoding.EncodeToString([]byte(run)) + "." + encoding.EncodeToString([]byte(path))
	return question + "." + encoding.EncodeToString(h.sign("answer", run, path))
}

// question returns the run and the path of an address, if this HTTP, or one with its Key, made
// it.
func (h *HTTP) question(address string) (run, path string, ok bool) {
	var parts [3][]byte
	words := strings.Split(address, ".")
	if len(words) != len(parts) {
		return "", "", false
	}
	for i, w := range words {
		var err error
		if parts[i], err = encoding.DecodeString(w); err != nil {
			return "", "", false
		}
	}
	run, path = string(parts[0]), string(parts[1])
	return run, path, hmac.Equal(parts[2], h.sign("answer", run, path))
}

// Token returns the token that lists the open questions of a run: GET the root with ?run=ID and
// the header "Authorization: Bearer TOKEN".
func (h *HTTP) Token(run string) string { return encoding.EncodeToString(h.sign("list", run)) }

// ServeHTTP lists the open questions of a run on GET of the root, and takes answers on
// POST of a question's address.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.checkKey(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	key := strings.Trim(r.URL.Path, "/")
	switch {
	case key == "" && r.Method == http.MethodGet:
		h.list(w, r)
	case key != "" && r.Method == http.MethodPost:
		h.take(w, r, key)
	default:
		http.Error(w, "GET the list of a run's questions, or POST an answer to a question's address", http.StatusMethodNotAllowed)
	}
}

func (h *HTTP) list(w http.ResponseWriter, r *http.Request) {
	run := r.URL.Query().Get("run")
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !hmac.Equal([]byte(token), []byte(h.Token(run))) {
		http.Error(w, "want ?run=ID and the header Authorization: Bearer with the token of that run", http.StatusForbidden)
		return
	}
	all := slices.DeleteFunc(h.Open(), func(q Posted) bool { return q.Run != run })
	for i := range all {
		all[i].Answer = ""
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // or the client has gone
}

func (h *HTTP) take(w http.ResponseWriter, r *http.Request, key string) {
	run, path, known := h.question(key)
	if !known {
		http.Error(w, "no such question", http.StatusGone)
		return
	}
	err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		http.Error(w, "the answer cannot be read in time", http.StatusInternalServerError)
		return
	}
	var a answered
	err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer)).Decode(&a)
	if err != nil || a.Response == nil {
		http.Error(w, `want JSON like {"response":"yes","by":"ada"}; an empty response cancels the question`, http.StatusBadRequest)
		return
	}
	given, err := a.read()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked, open := h.close(h.address(run, path)) // the key itself may have other spellings
	switch {
	case open:
		asked.answer <- *given
	case h.Late == nil:
		http.Error(w, "the question is not open, or already answered", http.StatusGone)
		return
	default:
		if err := h.Late(r.Context(), run, path, *given); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
