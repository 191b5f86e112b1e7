package otel_test

import (
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/stonelayer/stone/x/internal/spans"
)

// The constants are equal to the conventions'.
func TestNames(t *testing.T) {
	for ours, theirs := range map[string]string{
		spans.SchemaURL:     semconv.SchemaURL,
		spans.AgentName:     string(semconv.GenAIAgentNameKey),
		spans.FinishReasons: string(semconv.GenAIResponseFinishReasonsKey),
		spans.InputTokens:   string(semconv.GenAIUsageInputTokensKey),
		spans.OperationName: string(semconv.GenAIOperationNameKey),
		spans.OutputTokens:  string(semconv.GenAIUsageOutputTokensKey),
		spans.RequestModel:  string(semconv.GenAIRequestModelKey),

		spans.CacheReadTokens:  string(semconv.GenAIUsageCacheReadInputTokensKey),
		spans.CacheWriteTokens: string(semconv.GenAIUsageCacheCreationInputTokensKey),
		spans.Conversation:     string(semconv.GenAIConversationIDKey),
		spans.InputMessages:    string(semconv.GenAIInputMessagesKey),
		spans.OutputMessages:   string(semconv.GenAIOutputMessagesKey),
		spans.ProviderName:     string(semconv.GenAIProviderNameKey),
		spans.ReasoningTokens:  string(semconv.GenAIUsageReasoningOutputTokensKey),
		spans.RequestStream:    string(semconv.GenAIRequestStreamKey),
		spans.ResponseID:       string(semconv.GenAIResponseIDKey),
		spans.ResponseModel:    string(semconv.GenAIResponseModelKey),
		spans.ServerAddress:    string(semconv.ServerAddressKey),
		spans.ServerPort:       string(semconv.ServerPortKey),
		spans.System:           string(semconv.GenAISystemInstructionsKey),
		spans.ToolArguments:    string(semconv.GenAIToolCallArgumentsKey),
		spans.ToolCallID:       string(semconv.GenAIToolCallIDKey),
		spans.ToolDefinitions:  string(semconv.GenAIToolDefinitionsKey),
		spans.ToolResult:       string(semconv.GenAIToolCallResultKey),

		spans.ToolName:       string(semconv.GenAIToolNameKey),
		spans.ToolType:       string(semconv.GenAIToolTypeKey),
		spans.WorkflowName:   string(semconv.GenAIWorkflowNameKey),
		spans.ErrorType:      string(semconv.ErrorTypeKey),
		spans.ServiceName:    string(semconv.ServiceNameKey),
		spans.Chat:           semconv.GenAIOperationNameChat.Value.AsString(),
		spans.ExecuteTool:    semconv.GenAIOperationNameExecuteTool.Value.AsString(),
		spans.InvokeAgent:    semconv.GenAIOperationNameInvokeAgent.Value.AsString(),
		spans.InvokeWorkflow: semconv.GenAIOperationNameInvokeWorkflow.Value.AsString(),
	} {
		if ours != theirs {
			t.Errorf("%q, the conventions have %q", ours, theirs)
		}
	}
}
