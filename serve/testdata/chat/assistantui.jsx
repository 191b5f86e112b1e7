// The page that assistant-ui shows, with primitives in place of its styled components.
import { createRoot } from 'react-dom/client'
import { AssistantRuntimeProvider, ActionBarPrimitive, ComposerPrimitive, ErrorPrimitive, MessagePrimitive, ThreadPrimitive, makeAssistantTool, useAuiState } from '@assistant-ui/react'
import { AssistantChatTransport, useChatRuntime } from '@assistant-ui/react-ai-sdk'
import { lastAssistantMessageIsCompleteWithApprovalResponses as approvals, lastAssistantMessageIsCompleteWithToolCalls as calls } from 'ai-of-react'

const { pipeline } = Object.fromEntries(new URLSearchParams(location.search))
const Paint = makeAssistantTool({
	toolName: 'paint', description: 'Paints a stone.', parameters: { type: 'object', properties: { stone: { type: 'string' } } },
	execute: async ({ stone }) => 'painted ' + stone,
})

const Text = ({ text }) => <p>{text}</p>
const Tool = ({ toolName, args, status, result, approval, respondToApproval }) => <p>
	{toolName} {args?.stone} {status.type} {typeof result === 'string' && result}
	{approval && approval.approved === undefined && <button onClick={() => respondToApproval({ approved: true })}>Approve</button>}
</p>
const UserMessage = () => <MessagePrimitive.Root><MessagePrimitive.Parts components={{ Text }} /><ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit></MessagePrimitive.Root>
const AssistantMessage = () => <MessagePrimitive.Root>
	<MessagePrimitive.Parts components={{ Text, tools: { Fallback: Tool } }} />
	<MessagePrimitive.Error><ErrorPrimitive.Root><ErrorPrimitive.Message /></ErrorPrimitive.Root></MessagePrimitive.Error>
	<ActionBarPrimitive.Reload>Regenerate</ActionBarPrimitive.Reload>
</MessagePrimitive.Root>
const EditComposer = () => <ComposerPrimitive.Root><ComposerPrimitive.Input className="edit" /><ComposerPrimitive.Send>Update</ComposerPrimitive.Send></ComposerPrimitive.Root>
const Status = () => <output>{useAuiState(s => s.thread.isRunning) ? 'running' : 'ready'}</output>

function App() {
	const runtime = useChatRuntime({
		transport: new AssistantChatTransport({ api: '/v1/ui/' + pipeline }),
		sendAutomaticallyWhen: m => approvals(m) || calls(m),
	})
	return <AssistantRuntimeProvider runtime={runtime}>
		<Paint />
		<ThreadPrimitive.Root>
			<ThreadPrimitive.Viewport id="messages"><ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, EditComposer }} /></ThreadPrimitive.Viewport>
			<ComposerPrimitive.Root><ComposerPrimitive.Input className="new" /><ComposerPrimitive.Send>Send</ComposerPrimitive.Send></ComposerPrimitive.Root>
			<Status />
		</ThreadPrimitive.Root>
	</AssistantRuntimeProvider>
}

createRoot(document.getElementById('root')).render(<App />)
