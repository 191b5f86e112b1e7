package spans

import "strings"

// Names in the semantic conventions for generative AI, version 1.41.0, the last version whose packages contain them.
const (
	SchemaURL = "https://opentelemetry.io/schemas/1.41.0"

	AgentName        = "gen_ai.agent.name"
	CacheReadTokens  = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens = "gen_ai.usage.cache_creation.input_tokens"
	Conversation     = "gen_ai.conversation.id"
	FinishReasons    = "gen_ai.response.finish_reasons"
	InputMessages    = "gen_ai.input.messages"
	InputTokens      = "gen_ai.usage.input_tokens"
	OperationName    = "gen_ai.operation.name"
	OutputMessages   = "gen_ai.output.messages"
	OutputTokens     = "gen_ai.usage.output_tokens"
	ProviderName     = "gen_ai.provider.name"
	ReasoningTokens  = "gen_ai.usage.reasoning.output_tokens"
	RequestModel     = "gen_ai.request.model"
	RequestStream    = "gen_ai.request.stream"
	ResponseID       = "gen_ai.response.id"
	ResponseModel    = "gen_ai.response.model"
	System           = "gen_ai.system_instructions"
	ToolArguments    = "gen_ai.tool.call.arguments"
	ToolCallID       = "gen_ai.tool.call.id"
	ToolDefinitions  = "gen_ai.tool.definitions"
	ToolName         = "gen_ai.tool.name"
	ToolResult       = "gen_ai.tool.call.result"
	ToolType         = "gen_ai.tool.type"
	WorkflowName     = "gen_ai.workflow.name"

	ErrorType     = "error.type"
	ServerAddress = "server.address"
	ServerPort    = "server.port"
	ServiceName   = "service.name"
)

// Values of OperationName.
const (
	Chat           = "chat"            // a model's turn
	ExecuteTool    = "execute_tool"    // a tool call
	InvokeAgent    = "invoke_agent"    // an agent
	InvokeWorkflow = "invoke_workflow" // a run
)

// Values of ErrorType that are not failure kinds.
const (
	otherError = "_OTHER" // value for other errors in the conventions
	unfinished = "unfinished"
)

// conventional maps fields of an agent, a turn, a tool call or an attempt to their conventional names.
var conventional = map[string]string{
	"ashlar-name":        AgentName,
	"cache-read-tokens":  CacheReadTokens,
	"cache-write-tokens": CacheWriteTokens,
	"input-tokens":       InputTokens,
	"output-tokens":      OutputTokens,
	"model":              RequestModel,
	"reasoning-tokens":   ReasoningTokens,
	"response-id":        ResponseID,
	"response-model":     ResponseModel,
	"stop-reason":        FinishReasons,
	"stream":             RequestStream,
	"tool-call-id":       ToolCallID,
	"tool-name":          ToolName,
}

// attribute returns the attribute name for a field of an event. Only fields of agents, turns, tool calls and attempts have
// conventional names.
func attribute(field string, genAI bool) string {
	if name := conventional[field]; genAI && name != "" {
		return name
	}
	return "stone." + strings.ReplaceAll(field, "-", "_")
}
