// Package stonetest tests pipelines and the agents in them, with a model that
// says what the test tells it to, or with a real one. It is for tests only.
//
//	func TestDiscover(t *testing.T) {
//		h := stonetest.Mock(t,
//			stonetest.Call("ask_user", `{"question":"Which language is it?"}`),
//			stonetest.JSON(ProjectDoc{Language: "Go"}),
//		)
//		p := stonetest.Stub(t, Discover(h.Model()), "ask_user", stonetest.Answer("Go"))
//		res := h.Run(p, dag.Of(Dir.With(DirDoc{Path: "."})))
//		h.Called("ask_user")
//		h.NotCalled("write_file")
//		if got := stonetest.Nearest(t, Project, res.DAG); got.Language != "Go" {
//			t.Errorf("language %q, want Go", got.Language)
//		}
//	}
//
// # Two modes, one API
//
// A mock proves that the pipeline does the right thing with what the model says.
// Whether the model says it, with these prompts and these schemas, only the model
// can tell. So the first line is all that changes:
//
//	h := stonetest.Live(t, live.Model(t, live.Names{OpenAI: "gpt-5-mini"}))
//
// [Mock] answers from a list, which must neither run out nor be left over;
// [MockFunc] asks a function; [Live] takes any model and bounds the time.
// Package live skips the test where the environment offers no model. A run is never
// repeated: a test that fails now and then says something about the model.
//
// # What is looked at
//
// The harness watches the place where a model's intention meets the world: the
// call of a tool. It sees every call in the events of the run, those of tools
// that are not stubbed too, and keeps a [ToolCall] of each. Calls are listed in
// the order of the pipeline: lanes that ran at the same time one after the other,
// calls of one turn by their position. So a list is the same in every run.
//
// # Stubs
//
// [Stub] exchanges what a tool does, and nothing else: the model is offered the
// same tool in the same words. The tool is found by its name, anywhere in the
// pipeline, judges and healers of agents included. A stubbed pipeline is a new
// value; the one it was made of stays what it is.
//
// With Harness.Strict a tool that is not stubbed does not run, and the test fails
// when the model calls one.
//
// # Steps without a model
//
// Steps agree on types and nothing else, so any part of a pipeline can be tested
// by itself: [Run] gives it the nodes that it reads.
//
//	res := stonetest.Run(t, Parse(), File.With("x = 1"))
//
// A step that must fail is tested by a harness without answers:
//
//	stonetest.Mock(t).Fails(Parse(), dag.Of(File.With("x = ")), "bad-syntax")
package stonetest
