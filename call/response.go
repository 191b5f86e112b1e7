package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
)

// A Response is the envelope of the answer to a request. If Err is not nil, the envelope contains Err; otherwise, it contains
// Reply.
type Response struct {
	Trace Trace
	Reply *Reply
	Err   error
}

// MarshalJSON returns the envelope in JSON.
func (r Response) MarshalJSON() ([]byte, error) {
	v, err := r.value(true)
	if err != nil {
		return nil, err
	}
	return edn.ToJSON(v)
}

// EDN returns the envelope in EDN, with line breaks. Keys of the reply become keywords
// where possible.
func (r Response) EDN() ([]byte, error) {
	v, err := r.value(false)
	if err != nil {
		return nil, err
	}
	return edn.Format(v), nil
}

// value returns the envelope as a value for either notation.
func (r Response) value(inJSON bool) (edn.Value, error) {
	var b fields
	b.add("proto", edn.Int(proto))
	var trace fields
	trace.add("id", edn.String(r.Trace.ID))
	if r.Trace.Turn != 0 {
		trace.add("turn", edn.Int(int64(r.Trace.Turn)))
	}
	b.add("trace", trace.value())
	switch {
	case r.Err != nil:
		rec := recordBeside(r.Err)
		b.add("error", errorValue(r.Err, rec, &b))
		if rec != nil && rec.Usage != (Usage{}) {
			b.add("usage", usageValue(rec.Usage, &b))
		}
	case r.Reply != nil:
		b.add("result", replyValue(r.Reply, inJSON, &b))
	default:
		return edn.Value{}, errors.New("a response needs a reply or an error")
	}
	v := b.value()
	if b.err != nil {
		return v, fmt.Errorf("write the response: %w", b.err)
	}
	return v, nil
}

// errorValue returns the value of any error. If the error does not have a type, its failure kind is used.
func errorValue(err error, rec *Record, b *fields) edn.Value {
	e := AsError(err)
	var f fields
	f.name("type", e.Type)
	if e.Message != "" {
		f.add("message", edn.String(e.Message))
	}
	if e.Retryable {
		f.add("retryable?", edn.Bool(true))
	}
	if e.Where != "" {
		f.add("where", edn.String(e.Where))
	}
	f.data("details", detailed(e.Details, rec))
	b.note(f.err)
	return f.value()
}

// recordBeside returns the Record of the failed call in err, or nil.
func recordBeside(err error) *Record {
	if e, ok := errors.AsType[*Error](err); ok && e.Record != nil {
		return e.Record
	}
	var noted interface{ FailureMeta() map[string]string }
	if errors.As(err, &noted) {
		return RecordIn(noted.FailureMeta())
	}
	return nil
}

// detailed returns the details of a call's failure, with the call's attempts added if the details are an object. Fields that the
// capability has set are kept.
func detailed(details JSON, rec *Record) JSON {
	if rec == nil {
		return details
	}
	all := map[string]json.RawMessage{}
	if len(details) > 0 && json.Unmarshal(details, &all) != nil {
		return details
	}
	told, err := json.Marshal(struct {
		Attempts     int            `json:"attempts,omitempty"`
		Score        *float64       `json:"score,omitempty"`
		MustFailed   []string       `json:"must-failed,omitempty"`
		ShouldFailed []string       `json:"should-failed,omitempty"`
		Rejected     []Rejection    `json:"rejected,omitempty"`
		Findings     stone.Findings `json:"findings,omitempty"`
	}{rec.Attempts, rec.Score, rec.MustFailed, rec.ShouldFailed, rec.Rejected, rec.findings()})
	var more map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(told, &more)
	}
	for key, value := range more {
		if _, taken := all[key]; !taken {
			all[key] = value
		}
	}
	if len(all) == 0 || err != nil {
		return details
	}
	out, err := json.Marshal(all)
	if err != nil {
		return details
	}
	return out
}

func replyValue(r *Reply, inJSON bool, b *fields) edn.Value {
	var f fields
	kind := r.Type
	switch r.Type {
	case Plan:
		plan, err := edn.ReadEither(r.Plan, edn.Limits{})
		if err == nil && plan.Len() > 0 && plan.IsJSON() != inJSON {
			err = errors.New("a plan can only be returned in its own notation")
		}
		f.note(err)
		f.add("plan", plan)
		f.data("bindings", r.Bindings)
	default:
		kind = Value // a stream has been joined to a value
		f.data("out", r.Out)
	}
	f.name("type", kind)
	if r.Usage != (Usage{}) {
		f.add("usage", usageValue(r.Usage, b))
	}
	b.note(f.err)
	return f.value()
}

func usageValue(u Usage, b *fields) edn.Value {
	var f fields
	number := func(key string, n int64) {
		if n != 0 {
			f.add(key, edn.Int(n))
		}
	}
	number("input-tokens", int64(u.InputTokens))
	number("output-tokens", int64(u.OutputTokens))
	number("cache-read-tokens", int64(u.CacheReadTokens))
	number("cache-write-tokens", int64(u.CacheWriteTokens))
	number("attempts", int64(u.Attempts))
	number("latency-ms", u.LatencyMS)
	if u.USD != 0 {
		f.add("usd", edn.Float(math.Round(u.USD*1e12)/1e12)) // rounds off floating-point noise
	}
	if u.Estimated {
		f.add("estimated", edn.Bool(true))
	}
	if u.Cap != "" {
		f.name("cap/id", u.Cap)
	}
	if u.Mode != "" {
		f.name("mode", u.Mode)
	}
	if u.From != "" {
		f.add("from", edn.String(u.From))
	}
	b.note(f.err)
	return f.value()
}

// fields collects the keys and values of a map, and the first error.
type fields struct {
	all []edn.Value
	err error
}

func (f *fields) note(err error) {
	if f.err == nil && err != nil {
		f.err = err
	}
}

func (f *fields) add(key string, v edn.Value) {
	k, err := edn.Keyword(key)
	f.note(err)
	f.all = append(f.all, k, v)
}

func (f *fields) name(key, name string) {
	v, err := edn.Keyword(name)
	f.note(err)
	f.add(key, v)
}

// data adds canonical JSON, unless it is empty.
func (f *fields) data(key string, data JSON) {
	if len(data) == 0 {
		return
	}
	v, err := edn.FromJSON(data, edn.Limits{Bytes: 1 << 30, Depth: 10_000})
	f.note(err)
	f.add(key, withKeywords(v))
}

func (f *fields) value() edn.Value {
	v, err := edn.Map(f.all...)
	f.note(err)
	return v
}

// withKeywords turns the keys of objects into keywords where possible.
func withKeywords(v edn.Value) edn.Value {
	switch v.Kind() {
	case edn.KindVector:
		items := make([]edn.Value, 0, v.Len())
		for _, e := range v.Elements() {
			items = append(items, withKeywords(e))
		}
		return edn.Vector(items...)
	case edn.KindMap:
		items := make([]edn.Value, 0, 2*v.Len())
		for key, e := range v.Entries() {
			if k, err := edn.Keyword(key.Text()); err == nil {
				key = k
			}
			items = append(items, key, withKeywords(e))
		}
		// Distinct keys stay distinct, so Map cannot fail.
		m, _ := edn.Map(items...)
		return m
	}
	return v
}

// AsError returns the *Error that err wraps. If err wraps none, AsError returns a new *Error whose Type is the failure kind of
// err or, if it has none, InvokeFailed.
func AsError(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	e := &Error{Type: reasons.InvokeFailed, Message: err.Error(), Cause: err}
	var kinded interface{ FailureKind() string }
	if errors.As(err, &kinded) {
		e.Type = kinded.FailureKind()
		e.Message = kind.Kind(e.Type).Trim(e.Message)
	}
	return e
}
