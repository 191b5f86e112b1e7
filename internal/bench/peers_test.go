//go:build !alone

package bench

// The rows of the peers. They are all that names them outside of their own files: with the tag "alone",
// nothing of them is built, which takes minutes.

var peerBuilders = []builder{
	{"same/%d/langgraphgo", langgraphBuild, 0},
	{"same/%d/langchaingo", langchainBuild, 0},
	{"same/%d/eino", einoBuild, 1_000}, // quadratic
	{"same/%d/adk", adkBuild, 0},
	{"same/%d/trpc-agent-go", trpcBuild, 0},
}

var peerDurables = []durable{
	{"dbos", dbosDurable, true, false},
	{"adk", adkDurable, true, false},
	{"langgraphgo", langgraphDurable, false, false},
	{"trpc-agent-go", trpcDurable, true, false},
}

var peerFleets = []fleet{{"dbos", dbosFleet}}

var peerFanners = []fanner{
	{"langgraphgo", langgraphFanOut, 10_000},
	{"langchaingo", langchainFanOut, 0},
	{"adk", adkFanOut, 10_000},
	{"eino", einoFanOut, 10_000},
	{"trpc-agent-go", trpcFanOut, 10_000},
}

func peerLiners[T content[T]]() []liner[T] {
	return []liner[T]{
		{"langchaingo", langchainSequence[T], 0},
		{"langgraphgo", langgraphSequence[T], 0},
		{"genkit", genkitSequence[T], 0},
		{"eino", einoSequence[T], 100}, // quadratic to compile
		{"adk", adkSequence[T], 0},
		{"trpc-agent-go", trpcSequence[T], 100}, // quadratic to run
	}
}

var peerResumables = []resumable{{10_000, "dbos", dbosResume}}

var peerTurners = []turner{
	{"langchaingo", langchainTurns},
	{"langgraphgo", langgraphTurns},
	{"genkit", genkitTurns},
	{"eino-react", einoTurns},
	{"eino-adk", einoAgentTurns},
	{"adk", adkTurns},
	{"trpc-agent-go", trpcTurns},
}
