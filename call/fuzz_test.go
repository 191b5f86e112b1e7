package call_test

import (
	"encoding/json"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
)

// What is read as a request is written as one that is read as the same.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(request("effects", "{:allowed #{:net}}")))
	f.Add([]byte(`{"proto": 1, "trace": {"id": "j-7", "turn": 0}, "task": {"intent": "seed/sort"}, "input": {"n": 1e3}, "done": {"must": [":c/dry"]}}`))
	f.Add([]byte(`{"proto": 1, ":proto": 1, "task": [`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, spec, err := call.ReadRequest(data)
		if err != nil {
			if e := (*call.Error)(nil); !errors.As(err, &e) || e.Type != reasons.InvalidRequest || e.Reason() == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		text, err := json.Marshal(sent(t, trace, spec))
		if err != nil {
			t.Fatal(err)
		}
		traceAgain, again, err := call.ReadRequest(text)
		if err != nil || trace != traceAgain {
			t.Fatalf("%s: %+v, %v", text, traceAgain, err)
		}
		sameSpec(t, spec, again)
	})
}

// What is read as a reply is written, in both notations, as the same reply.
func FuzzReadReply(f *testing.F) {
	for _, part := range []string{
		`:result {:type :value :out {:b [1.5 :k] "n m" nil} :usage {:usd 0.1 :input-tokens 3 :mode :live}}`,
		`:result {:type :stream :stream ["Once " "upon"]}`,
		`:result {:type :stream :stream ["&<>"]}`,
		`:result {:type :plan :plan {:nodes [{:op :emit :input :x}]} :bindings {:x {:y :z}}}`,
		`:error {:type :kiln/cold :message "out" :retryable? true :where :pilot :details {:p [1]}}`,
		`:result {:type :error :error {:type :kiln/cold}}`,
	} {
		f.Add([]byte(`{:proto 1 :trace {:id "a"} ` + part + `}`))
	}
	f.Add([]byte(`{"proto": 1, "trace": {"id": "a"}, "result": {"type": "plan", "plan": {"nodes": [":x"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		reply, failure := call.ReadReply(data)
		if e := (*call.Error)(nil); failure != nil && (!errors.As(failure, &e) || e.Type == "") {
			t.Fatalf("an error without a type: %v", failure)
		}
		r := call.Response{Trace: call.Trace{ID: "a"}, Reply: reply, Err: failure}
		inJSON, errJSON := r.MarshalJSON()
		inEDN, errEDN := r.EDN()
		if errJSON != nil && errEDN != nil || (errJSON != nil || errEDN != nil) && (reply == nil || reply.Type != call.Plan) {
			t.Fatalf("%v, %v", errJSON, errEDN)
		}
		want := said(reply, failure)
		if reply != nil && reply.Type == call.Stream {
			folded := *reply
			folded.Type = call.Value
			want = said(&folded, nil)
		}
		for _, text := range [][]byte{inJSON, inEDN} {
			if text == nil {
				continue
			}
			if diff := gocmp.Diff(want, said(call.ReadReply(text))); diff != "" {
				t.Errorf("%s\n%s", text, diff)
			}
		}
	})
}
