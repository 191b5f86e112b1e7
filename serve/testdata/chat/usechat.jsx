// The page that the documents of the AI SDK show, with the settings of the address.
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses as approvals, lastAssistantMessageIsCompleteWithToolCalls as calls } from 'ai-of-react'

const { id, pipeline, when, stop: header, brief, device } = Object.fromEntries(new URLSearchParams(location.search))
const transport = new DefaultChatTransport({
	api: '/v1/ui/' + pipeline,
	prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${encodeURIComponent(id)}/stream?message=${encodeURIComponent(asked)}` }),
	...header && { headers: { 'Stone-Stop': header } },
	...brief && { prepareSendMessagesRequest: ({ messages, id }) => ({ body: { message: messages[messages.length - 1], id } }) },
})

const before = device ? (await (await fetch(`/v1/ui/${pipeline}/${id}`)).json()).messages : JSON.parse(sessionStorage[id] ?? '[]')

let asked = '' // the id of the newest message of the user

function Part({ part, answer }) {
	if (part.type === 'text') return <p>{part.text}</p>
	if (!isToolUIPart(part)) return null
	return <p>
		{part.type.slice(5)} {part.input?.stone} {part.state} {typeof part.output === 'string' && part.output}
		{part.state === 'approval-requested' && <>
			<button onClick={() => answer({ id: part.approval.id, approved: true })}>Approve</button>
			<button onClick={() => answer({ id: part.approval.id, approved: false, reason: 'too dear' })}>Deny</button>
		</>}
	</p>
}

function Chat() {
	const [input, setInput] = useState('')
	const { messages, sendMessage, regenerate, stop, status, error, addToolApprovalResponse, addToolOutput } = useChat({
		id, transport, resume: true, messages: before,
		sendAutomaticallyWhen: { approvals, calls, both: m => approvals(m) || calls(m), always: () => true }[when],
		async onToolCall({ toolCall }) {
			if (toolCall.dynamic) return
			if (toolCall.toolName === 'scroll') addToolOutput({ tool: 'scroll', toolCallId: toolCall.toolCallId, output: 'scrolled to ' + toolCall.input.stone })
		},
	})
	asked = messages.findLast(m => m.role === 'user')?.id ?? ''
	sessionStorage[id] = JSON.stringify(messages)
	return <>
		<ol>{messages.map(m => <li key={m.id} className={m.role}>
			{m.parts.map((part, i) => <Part key={i} part={part} answer={addToolApprovalResponse} />)}
			{m.role === 'user' && <button onClick={() => sendMessage({ text: input, messageId: m.id })}>Edit</button>}
		</li>)}</ol>
		<form onSubmit={e => { e.preventDefault(); sendMessage({ text: input }); setInput('') }}>
			<input value={input} onChange={e => setInput(e.target.value)} />
			<button type="submit">Send</button>
		</form>
		<button onClick={() => regenerate()}>Regenerate</button> <button onClick={() => stop()}>Stop</button>
		<output>{error ? 'error: ' + error.message : status}</output>
	</>
}

createRoot(document.getElementById('root')).render(<StrictMode><Chat /></StrictMode>)
