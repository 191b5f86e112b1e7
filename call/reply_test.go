package call_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
)

// said puts a reply into one string: its parts, or the type of the failure.
func said(r *call.Reply, err error) string {
	if e := (*call.Error)(nil); errors.As(err, &e) {
		if e.Type == reasons.SchemaInvalid {
			return e.Type
		}
		return fmt.Sprintf("%s %q retry %v where %q details %s", e.Type, e.Message, e.Retryable, e.Where, e.Details)
	}
	if err != nil {
		return "no *Error: " + err.Error()
	}
	s := r.Type + " " + string(r.Out) + string(r.Plan) + " " + string(r.Bindings)
	if r.Usage != (call.Usage{}) {
		s += fmt.Sprintf("%+v", r.Usage)
	}
	return strings.TrimSpace(s)
}

func TestReadReply(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`:result {:type :value :out {:b [1.5 :k] :a nil}}`, `value {"a":null,"b":[1.5,"k"]}`},
		{`:result {:type :value :out nil}`, `value null`},
		{`:result {:type :value :out 1 :usage {:input-tokens 3 :usd 0.5 :mode :live :cap/id :a/b}}`,
			`value 1 {Usage:{InputTokens:3 OutputTokens:0 CacheReadTokens:0 CacheWriteTokens:0 USD:0.5 Estimated:false} Attempts:0 LatencyMS:0 Cap:a/b Mode:live Sandbox: From:}`},
		{`:result {:type :stream :stream ["Once " "upon"]}`, `stream {"text":"Once upon"}`},
		{`:result {:type :stream :stream []}`, `stream {"text":""}`},
		{`:result {:type :plan :plan {:nodes [{:op :emit :input :x}]} :bindings {:x {:y :z}}}`,
			`plan {:nodes [{:input :x, :op :emit}]} {"x":{"y":"z"}}`},
		{`:error {:type :kiln/cold :message "out" :retryable? true :where :pilot :details {:p [1]} :code 7}`,
			`kiln/cold "out" retry true where "pilot" details {"p":[1]}`},
		{`:error {:type :kiln/cold :where "the pilot"}`, `kiln/cold "" retry false where "the pilot" details `},
		{`:result {:type :error :error {:type :kiln/cold}}`, `kiln/cold "" retry false where "" details `},

		{``, "schema/invalid"},
		{`:result {:type :value :out 1} :error {:type :a}`, "schema/invalid"},
		{`:result nil`, "schema/invalid"},
		{`:result {:type :value}`, "schema/invalid"},
		{`:result {:out 1}`, "schema/invalid"},
		{`:result {:type "value" :out 1}`, "schema/invalid"},
		{`:result {:type :table :out 1}`, "schema/invalid"},
		{`:result {:type :value :out 1 :plan {}}`, "schema/invalid"},
		{`:result {:type :value :out {1 2}}`, "schema/invalid"},
		{`:result {:type :value :out ##NaN}`, "schema/invalid"},
		{`:result {:type :value :out 1 :usage {:usd -1}}`, "schema/invalid"},
		{`:result {:type :value :out 1 :usage {:input-tokens 9223372036854775807}}`, "schema/invalid"},
		{`:result {:type :value :out 1 :usage {:mode :dream}}`, "schema/invalid"},
		{`:result {:type :value :out 1 :usage {:mode "live"}}`, "schema/invalid"},
		{`:result {:type :stream :stream ["a" 1]}`, "schema/invalid"},
		{`:result {:type :stream :stream "a"}`, "schema/invalid"},
		{`:result {:type :plan :plan []}`, "schema/invalid"},
		{`:result {:type :plan :plan {} :bindings [1]}`, "schema/invalid"},
		{`:result {:type :error}`, "schema/invalid"},
		{`:error {}`, "schema/invalid"},
		{`:error {:type "kiln/cold"}`, "schema/invalid"},
		{`:error "cold"`, "schema/invalid"},
		{`:result {:type :value :out 1} :grant #{:all}`, "schema/invalid"},
	} {
		got := said(call.ReadReply([]byte(`{:proto 1 :trace {:id "a"} ` + tc.text + `}`)))
		if got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
	for _, text := range []string{
		"", "{", "[1]", `"text"`, "nil",
		`{:trace {:id "a"} :result {:type :value :out 1}}`,
		`{:proto 1 :result {:type :value :out 1}}`,
		`{:proto 2 :trace {:id "a"} :result {:type :value :out 1}}`,
		`{:proto 1 :trace {} :result {:type :value :out 1}}`,
		strings.Repeat(" ", 100<<20),
		`{"result": {"type": "value", "out": ` + strings.Repeat("[", 10_000),
	} {
		if got := said(call.ReadReply([]byte(text))); got != "schema/invalid" {
			t.Errorf("%.80s: got %s", text, got)
		}
	}
}

func TestReadReplyInJSON(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`"result": {"type": ":value", "out": {"a": ":k", "n": 12345678901234567890}}`, `value {"a":":k","n":12345678901234567890}`},
		{`"result": {"type": "plan", "plan": {"nodes": [{"op": "emit", "input": {"f": ":x"}}]}}`,
			`plan {"nodes":[{"input":{"f":":x"},"op":"emit"}]}`},
		{`"error": {"type": ":kiln/cold", "where": "a b"}`, `kiln/cold "" retry false where "a b" details `},
		{`"error": {"type": 5}`, "schema/invalid"},
	} {
		got := said(call.ReadReply([]byte(`{"proto": 1, "trace": {"id": "a"}, ` + tc.text + `}`)))
		if got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
}

func TestReadOutput(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"text": "a"}`, `value {"text":"a"}`},
		{`[1, 2]`, `value [1,2]`},
		{`7`, `value 7`},
		{`{"result": {"type": "value", "out": 3}}`, `value 3`},
		{`{"error": {"type": "sieve/clogged", "message": "wet"}}`, `sieve/clogged "wet" retry false where "" details `},
		{`{"error": "it broke"}`, "schema/invalid"},
		{`{"result": 42}`, `value {"result":42}`},
		{`{"result": {"type": "circle"}}`, "schema/invalid"},
		{`{"result": {"type": "value", "out": 3}, "error": {"type": "a"}}`, "schema/invalid"},
		{`{"proto": 2, "result": {"type": "value", "out": 3}}`, "schema/invalid"},
		{`not json {`, "schema/invalid"},
		{`garbage`, "schema/invalid"},
		{`[:a :b]`, "schema/invalid"},
		{``, "schema/invalid"},
		{`{:text "in EDN"}`, `value {"text":"in EDN"}`},
		{"{\"type\":\"delta\",\"text\":\"a\"}\n\n {:type :delta :cap/id :x :text \"b\"}", `stream {"text":"ab"}`},
		{"{\"type\":\"delta\",\"text\":\"a\"}\n{\"type\":\"retracted\"}\n{\"type\":\"delta\",\"text\":\"b\"}", `stream {"text":"b"}`},
		{"{\"type\":\"delta\",\"text\":\"a\"}\n[1,\n2]\n", `value [1,2]`},
		{"{\"type\":\"delta\",\"text\":\"a\"}\n[1]\n{\"type\":\"delta\",\"text\":\"b\"}", "schema/invalid"},
		{"{\"type\":\"delta\",\"text\":\"a\"}\n{\"type\":\"del", "schema/invalid"},
		{`{"type": "delta"}`, `value {"type":"delta"}`},
	} {
		if got := said(call.ReadOutput([]byte(tc.text))); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
}

type kinded struct{ error }

func (kinded) FailureKind() string { return "loop-exhausted" }

func TestResponse(t *testing.T) {
	trace := call.Trace{ID: ":r", Turn: 2}
	for _, tc := range []struct {
		name      string
		reply     *call.Reply
		err       error
		json, edn string
	}{
		{
			name:  "value",
			reply: &call.Reply{Out: call.JSON(`{"text":"a","n m":[{"k":null}]}`), Usage: call.Usage{Usage: budget.Usage{USD: 0.25}, Attempts: 2, Cap: "a/b", Mode: llm.Replay}},
			json:  `{"proto":1,"result":{"out":{"n m":[{"k":null}],"text":"a"},"type":"value","usage":{"attempts":2,"cap/id":"a/b","mode":"replay","usd":0.25}},"trace":{"id":":r","turn":2}}`,
			edn:   `{:proto 1, :result {:out {"n m" [{:k nil}], :text "a"}, :type :value, :usage {:attempts 2, :cap/id :a/b, :mode :replay, :usd 0.25}}, :trace {:id ":r", :turn 2}}`,
		},
		{
			name: "error",
			err:  fmt.Errorf("around: %w", &call.Error{Type: "kiln/cold", Message: "out", Retryable: true, Where: "pilot", Details: call.JSON(`{"p":[1]}`)}),
			json: `{"error":{"details":{"p":[1]},"message":"out","retryable?":true,"type":"kiln/cold","where":"pilot"},"proto":1,"trace":{"id":":r","turn":2}}`,
			edn:  `{:error {:details {:p [1]}, :message "out", :retryable? true, :type :kiln/cold, :where "pilot"}, :proto 1, :trace {:id ":r", :turn 2}}`,
		},
		{
			name: "the error of a call",
			err: &call.Error{Type: "kiln/cold", Details: call.JSON(`{"attempts":"mine","p":9007199254740993}`), Record: &call.Record{
				Attempts: 2, MustFailed: []string{"long"}, Rejected: []call.Rejection{{Cap: "a/b", Reason: "budget/cost"}}, Usage: call.Usage{Attempts: 2, Cap: "c/d"}}},
			json: `{"error":{"details":{"attempts":"mine","must-failed":["long"],"p":9007199254740993,"rejected":[{"cap/id":"a/b","reason":"budget/cost"}]},"type":"kiln/cold"},"proto":1,"trace":{"id":":r","turn":2},"usage":{"attempts":2,"cap/id":"c/d"}}`,
			edn:  `{:error {:details {:attempts "mine", :must-failed ["long"], :p 9007199254740993, :rejected [{:cap/id "a/b", :reason "budget/cost"}]}, :type :kiln/cold}, :proto 1, :trace {:id ":r", :turn 2}, :usage {:attempts 2, :cap/id :c/d}}`,
		},
		{
			name: "an error of its own kind",
			err:  kinded{errors.New("round 5")},
			json: `{"error":{"message":"round 5","type":"loop-exhausted"},"proto":1,"trace":{"id":":r","turn":2}}`,
			edn:  `{:error {:message "round 5", :type :loop-exhausted}, :proto 1, :trace {:id ":r", :turn 2}}`,
		},
		{
			name:  "plan",
			reply: &call.Reply{Type: call.Plan, Plan: []byte(`{:nodes [{:op :emit}]}`), Bindings: call.JSON(`{"x":1}`)},
			json:  "write the response: a plan can only be returned in its own notation",
			edn:   `{:proto 1, :result {:bindings {:x 1}, :plan {:nodes [{:op :emit}]}, :type :plan}, :trace {:id ":r", :turn 2}}`,
		},
		{name: "nothing", json: "a response needs a reply or an error", edn: "a response needs a reply or an error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := call.Response{Trace: trace, Reply: tc.reply, Err: tc.err}
			inJSON, err := r.MarshalJSON()
			if err != nil {
				inJSON = []byte(err.Error())
			}
			if diff := gocmp.Diff(tc.json, string(inJSON)); diff != "" {
				t.Error(diff)
			}
			text, err := r.EDN()
			if err != nil {
				text = []byte(err.Error())
			} else if v, err := edn.Read(text, edn.Limits{}); err == nil {
				text = []byte(v.String())
			}
			if diff := gocmp.Diff(tc.edn, string(text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ExampleReadReply() {
	reply, err := call.ReadReply([]byte(`{:proto 1 :trace {:id "r-4a2b"}
		:result {:type :stream :stream ["Once " "upon a hill"]}}`))
	fmt.Println(string(reply.Out), err)

	_, err = call.ReadReply([]byte(`{"proto": 1, "trace": {"id": "r-4a2b"},
		"error": {"type": "kiln/cold", "message": "the pilot is out"}}`))
	fmt.Println(err)
	// Output:
	// {"text":"Once upon a hill"} <nil>
	// kiln/cold: the pilot is out
}

func ExampleReadRequest() {
	_, _, err := call.ReadRequest([]byte(`{:proto 1 :trace {:id "r-4a2b"}
		:task {:intent :text/respond :dispatch {:strategy :rase}}
		:input {:prompt "hello"}}`))
	fmt.Println(err)
	// Output:
	// invalid-request: dispatch/strategy-unknown: 2:53: task.dispatch.strategy: unknown name "rase"; known are cascade, tournament, race, agreement; did you mean "race"?
}

func ExampleResponse() {
	data, err := json.Marshal(call.Response{
		Trace: call.Trace{ID: "r-4a2b"},
		Reply: &call.Reply{Out: call.JSON(`{"text":"hello"}`)},
	})
	fmt.Println(string(data), err)
	// Output:
	// {"proto":1,"result":{"out":{"text":"hello"},"type":"value"},"trace":{"id":"r-4a2b"}} <nil>
}
