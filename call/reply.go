package call

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// ReadReply decodes the envelope of a reply, in EDN or JSON. If the envelope contains an error, ReadReply returns it as an
// *Error; if the envelope is malformed, it returns an *Error of type SchemaInvalid. The parts of a stream are joined in Out. A
// plan stays in the notation of the envelope.
func ReadReply(data []byte) (*Reply, error) {
	v, err := edn.ReadEither(data, envelopeLimits)
	if err != nil {
		return nil, malformed(err)
	}
	return readReply(v, true)
}

// ReadOutput decodes the output of a program: either the envelope of a reply or only the out of a value. An envelope is JSON or
// EDN, and may omit proto and trace. A bare out is JSON, or a map in EDN. A map with proto, error, or a result with a type is
// read as an envelope, so that an error is never mistaken for a value. Plain text is malformed, although EDN would read its first
// word as a symbol.
//
// A program that streams writes each piece of its text first, on a line of its own:
//
//	{"type": "delta", "text": "Once upon"}
//	{"type": "delta", "text": " a time"}
//
// The line {"type": "retracted", "reason": "…"} voids the preceding pieces. The answer follows the pieces. Without an answer, the
// reply is a Stream with the joined text.
func ReadOutput(data []byte) (*Reply, error) {
	if text, rest, ok := joinPieces(data); ok {
		if data = rest; len(bytes.TrimSpace(rest)) == 0 {
			return &Reply{Type: Stream, Out: textOut(text)}, nil
		}
	}
	v, err := edn.ReadEither(data, envelopeLimits)
	if err != nil {
		return nil, malformed(err)
	}
	if isEnvelope(v) {
		return readReply(v, false)
	}
	if v.Kind() != edn.KindMap && !json.Valid(data) {
		return nil, malformed(v.Errorf("want JSON, or a map in EDN"))
	}
	out, err := edn.ToJSON(v)
	if err != nil {
		return nil, malformed(err)
	}
	return &Reply{Type: Value, Out: out}, nil
}

func isEnvelope(v edn.Value) bool {
	_, proto := v.Field("proto")
	_, failed := v.Field("error")
	result, _ := v.Field("result")
	_, typed := result.Field("type")
	return proto || failed || typed
}

func malformed(err error) *Error {
	return &Error{Type: reasons.SchemaInvalid, Message: "the reply is malformed: " + err.Error()}
}

func readReply(v edn.Value, strict bool) (*Reply, error) {
	reply, failure := &Reply{}, (*Error)(nil)
	faults := form.Read(v, func(m *form.Map) {
		if strict {
			m.Need("proto", "trace")
		}
		if _, ok := m.Field("proto"); ok {
			readProto(m)
		}
		m.At("trace").Map(new(Trace).read)
		result, ok := m.Field("result")
		_, failed := m.Field("error")
		switch {
		case ok && failed:
			m.Fault(form.Invalid, "expected either result or error, found both")
		case ok:
			result.Map(func(m *form.Map) { failure = reply.read(m) })
		case failed:
			failure = readError(m)
			m.At("usage").Map(failure.Usage.read)
		default:
			m.Fault(form.Missing, "expected result or error, found neither")
		}
	})
	switch {
	case len(faults) > 0:
		return nil, malformed(faults)
	case failure != nil:
		return nil, failure
	}
	return reply, nil
}

// read reads a result. If the result is of type error, read returns that error.
func (r *Reply) read(m *form.Map) *Error {
	m.Need("type")
	if !m.At("type").OneOf(&r.Type, Value, Plan, Stream, "error") {
		m.AllowRest() // the other fields depend on the type
		return nil
	}
	m.At("usage").Map(r.Usage.read)
	switch r.Type {
	case "error":
		failure := readError(m)
		failure.Usage = r.Usage
		return failure
	case Value:
		m.Need("out")
		m.At("out").JSON(&r.Out)
	case Plan:
		m.Need("plan")
		if v, ok := m.Field("plan"); ok {
			r.readPlan(v)
		}
		m.At("bindings").Map(func(b *form.Map) {
			b.AllowRest()
			m.At("bindings").JSON(&r.Bindings)
		})
	case Stream:
		m.Need("stream")
		if m.At("stream").Texts(&r.parts) {
			r.Out = textOut(strings.Join(r.parts, ""))
		}
	}
	return nil
}

// readPlan stores the text of a plan, which package plan checks.
func (r *Reply) readPlan(v form.Value) {
	if v.EDN().Kind() != edn.KindMap {
		v.Fault(form.Invalid, "expected a plan, which is a map with nodes")
		return
	}
	if !v.EDN().IsJSON() {
		r.Plan = v.EDN().Append(nil)
		return
	}
	var data json.RawMessage
	if v.JSON(&data) {
		r.Plan = data
	}
}

// textOut returns the out of a stream of text.
func textOut(text string) JSON {
	// A string always has canonical JSON.
	data, _ := canon.Append(nil, map[string]string{"text": text})
	return data
}

// modes lists the values of Usage.Mode.
var modes = []string{llm.Live, llm.Mock, llm.Replay}

// read reads the usage of an answer. Further fields are allowed.
func (u *Usage) read(m *form.Map) {
	m.AllowRest()
	const most = math.MaxInt >> 10 // keeps sums from overflowing
	m.At("input-tokens").Int(&u.InputTokens, 0, most)
	m.At("output-tokens").Int(&u.OutputTokens, 0, most)
	m.At("cache-read-tokens").Int(&u.CacheReadTokens, 0, most)
	m.At("cache-write-tokens").Int(&u.CacheWriteTokens, 0, most)
	m.At("usd").Float(&u.USD, 0, math.Inf(1))
	m.At("attempts").Int(&u.Attempts, 0, most)
	var latency time.Duration
	m.At("latency-ms").Duration(&latency)
	u.LatencyMS = latency.Milliseconds()
	m.At("cap/id").Name(&u.Cap)
	m.At("mode").OneOf(&u.Mode, modes...)
}

// ofRun contains the failure kinds that describe the run itself. A reply must not use them: an error of such a type receives the
// prefix "remote/".
var ofRun = map[string]bool{reasons.BudgetExhausted: true, reasons.ForbiddenEffect: true}

func init() {
	for _, k := range kind.All() {
		ofRun[string(k)] = true
	}
}

// readError reads the field "error". Further fields in it are allowed.
func readError(m *form.Map) *Error {
	e := &Error{}
	m.Need("error")
	m.At("error").Map(func(m *form.Map) {
		m.AllowRest()
		m.Need("type")
		if m.At("type").Name(&e.Type) && ofRun[e.Type] {
			e.Type = "remote/" + e.Type
		}
		m.At("message").Text(&e.Message)
		m.At("retryable?").Bool(&e.Retryable)
		if v, ok := m.Field("where"); ok {
			if v.EDN().Kind() == edn.KindString {
				v.Text(&e.Where)
			} else {
				v.Name(&e.Where)
			}
		}
		m.At("details").JSON(&e.Details)
	})
	return e
}
