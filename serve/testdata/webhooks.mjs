// Verifies each notice with both secrets, and then with a changed body.
import OpenAI from "openai";
const client = new OpenAI();
const ok = async (body, headers, secret) => {
  try {
    await client.webhooks.verifySignature(body, headers, secret);
    return "ok";
  } catch (e) {
    return "refused";
  }
};
const [fresh, old] = process.env.SECRETS.split(" ");
for (const { body, headers } of JSON.parse(process.env.NOTICES)) {
  console.log(await ok(body, headers, fresh), await ok(body, headers, old), await ok(body + " ", headers, fresh));
}
