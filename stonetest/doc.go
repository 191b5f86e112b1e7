// Package stonetest tests pipelines and the agents in them, with a model whose answers the test supplies, or with a real one.
// [TestModel] and [TestCapability] test models and capabilities of your own. The package is for tests only.
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
// A mock shows that the pipeline handles the model's answers correctly. Only the real model can show that it returns such answers
// to these prompts and schemas. Only the first line changes:
//
//	h := stonetest.Live(t, stonetest.LiveModel(t, stonetest.ModelNames{OpenAI: "gpt-5-mini"}))
//
// [Mock] answers from a list, all of which must be used; [MockFunc] calls a function; [Live] uses any model and limits the time.
// [LiveModel] skips the test if the environment does not provide a model. A run is never repeated, because a test that fails now
// and then reveals something about the model.
//
// # What the harness sees
//
// The harness records the tool calls of a model as [ToolCall] values. It finds them in the events of the run, so they include
// calls of tools without a stub. Calls are listed in the order of the pipeline: those of concurrent lanes one lane after the
// other, and those of one turn by their position. The list is therefore the same in every run.
//
// # Stubs
//
// [Stub] replaces the handler of a tool, and nothing else: the model is offered the same tool with the same description. The tool
// is found by its name, anywhere in the pipeline, including agents' judges and healers. Stubbing returns a new pipeline; the
// original does not change.
//
// With Harness.Strict, tools without a stub do not run, and the test fails if the model calls one.
//
// # Steps without a model
//
// Steps depend on each other only through types, so any part of a pipeline can be tested alone: [Run] supplies the input nodes.
//
//	res := stonetest.Run(t, Parse(), File.With("x = 1"))
//
// To test that a step fails, use a harness without answers:
//
//	stonetest.Mock(t).Fails(Parse(), dag.Of(File.With("x = ")), "bad-syntax")
//
// # Models and capabilities of your own
//
// [TestModel] and [TestCapability] check that a model or a capability meets the contract documented at its type. A package that
// implements a model or a capability can test it with one call:
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
