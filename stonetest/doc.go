// Package stonetest helps to test pipelines and the agents in them, either with a model whose answers the test supplies or with a
// real model. [TestModel] and [TestCapability] test your own implementations of models and capabilities. Import the package only
// in tests.
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
// A test with a mock shows that the pipeline handles certain answers correctly. Only a test with a real model can show that the
// model gives such answers to these prompts and schemas. To use a real model, change only the first line:
//
//	h := stonetest.Live(t, stonetest.LiveModel(t, stonetest.ModelNames{OpenAI: "gpt-5-mini"}))
//
// The model of [Mock] returns the answers of a list, and the test must use all of them. The model of [MockFunc] calls a function
// for each answer. [Live] uses any model and limits the duration of each run. [LiveModel] skips the test if the environment does
// not configure a model. A failed run is never repeated, because an occasional failure reveals something about the model.
//
// # What the harness sees
//
// The harness records each tool call of a model as a [ToolCall]. It takes the calls from the run's events, so calls of tools
// without a stub are included. Calls are listed in the order of the pipeline: first all calls of one concurrent lane, then all
// calls of the next lane, and within a turn by their position. The order is therefore the same in every run.
//
// # Stubs
//
// [Stub] replaces only the handler of a tool: the model is still offered the same tool with the same description. The tool is
// found by its name, anywhere in the pipeline, including agents' judges and healers. Stub returns a new pipeline and leaves the
// original unchanged.
//
// With Harness.Strict, tools without a stub do not run, and the test fails if the model calls one.
//
// # Steps without a model
//
// Steps depend on each other only through the types of their nodes, so each part of a pipeline can be tested alone. [Run] runs it
// on the given input nodes.
//
//	res := stonetest.Run(t, Parse(), File.With("x = 1"))
//
// To test that a step fails, use a harness without answers:
//
//	stonetest.Mock(t).Fails(Parse(), dag.Of(File.With("x = ")), "bad-syntax")
//
// # Models and capabilities of your own
//
// [TestModel] checks that a model meets the contract documented at llm.Model, and [TestCapability] that a capability meets the
// contract documented at call.Capability. Each needs only one call:
//
//	func TestModel(t *testing.T) {
//		stonetest.TestModel(t, func(t *testing.T, answers ...script.Answer) llm.Model {
//			server := httptest.NewServer(script.New(answers...))
//			t.Cleanup(server.Close)
//			return mine.New(mine.Config{URL: server.URL})
//		})
//	}
//
// [Multi] combines several answers, such as a text and tool calls, into one.
package stonetest
