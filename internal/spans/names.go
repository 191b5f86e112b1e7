package spans

import "strings"

// Names of the semantic conventions for generative AI at version 1.41.0, the last version
// whose packages have them.
const (
	SchemaURL = "https://opentelemetry.io/schemas/1.41.0"

	AgentName     = "gen_ai.agent.name"
	FinishReasons = "gen_ai.response.finish_reasons"
	InputTokens   = "gen_ai.usage.input_tokens"
	OperationName = "gen_ai.operation.name"
	OutputTokens  = "gen_ai.usage.output_tokens"
	RequestModel  = "gen_ai.request.model"
	ToolName      = "gen_ai.tool.name"
	ToolType      = "gen_ai.tool.type"
	WorkflowName  = "gen_ai.workflow.name"

	ErrorType   = "error.type"
	ServiceName = "service.name"
)

// Values of OperationName.
const (
	Chat           = "chat"            // a turn of a model
	ExecuteTool    = "execute_tool"    // a call of a tool
	InvokeAgent    = "invoke_agent"    // an agent
	InvokeWorkflow = "invoke_workflow" // a run
)

// Values of ErrorType that are not kinds of failures.
const (
	otherError = "_OTHER" // the conventions' value for other errors
	unfinished = "unfinished"
)

// conventional maps fields of an agent, a turn, a tool call or an attempt to their conventional names.
var conventional = map[string]string{
	"ashlar-name":   AgentName,
	"input-tokens":  InputTokens,
	"output-tokens": OutputTokens,
	"model":         RequestModel,
	"stop-reason":   FinishReasons,
	"tool-name":     ToolName,
}

// attribute returns the name of the attribute for a field of an event. Only fields of an agent, a
// turn, a tool call or an attempt have conventional names.
func attribute(field string, genAI bool) string {
	if name := conventional[field]; genAI && name != "" {
		return name
	}
	return "stone." + strings.ReplaceAll(field, "-", "_")
}
