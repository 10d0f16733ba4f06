// The vendor's own SDK against our fake: if it is content, the fake is true. It has no setting for another address, but takes
// a `fetch` of ours, which sends everything to the fake.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
const { Sandbox } = createRequire(process.env.SDKS + '/x.js')('@vercel/sandbox')

const credentials = { token: process.env.FAKE_TOKEN, teamId: process.env.FAKE_TEAM, projectId: process.env.FAKE_PROJECT }
const home = 'https://vercel.com/api'
const toFake = (url, options) => {
  assert.ok(String(url).startsWith(home), String(url))
  const { dispatcher, ...rest } = options
  return fetch(process.env.FAKE_URL + String(url).slice(home.length), rest)
}
const params = { ...credentials, fetch: toFake }

const sandbox = await Sandbox.create({ ...params, name: 'sdk', runtime: 'node24', ports: [3000], env: { A: 'from the env' }, tags: { who: 'sdk' }, timeout: 600000, resources: { vcpus: 2 }, networkPolicy: { allow: ['github.com'] } })
const ran = await sandbox.runCommand('sh', ['-c', 'echo "$A"; echo no >&2; exit 4'])
assert.equal(ran.exitCode, 4)
assert.equal(await ran.stdout(), 'from the env\n')
assert.equal(await ran.stderr(), 'no\n')
const here = (await (await sandbox.runCommand('pwd')).stdout()).trim()
await sandbox.writeFiles([{ path: `${here}/d/bin`, content: Buffer.from([0, 1, 255, 10]), mode: 0o755 }])
const back = await sandbox.readFileToBuffer({ path: `${here}/d/bin` })
assert.deepEqual([...back], [0, 1, 255, 10])
assert.equal(await sandbox.readFileToBuffer({ path: `${here}/none` }), null)
await sandbox.mkDir(`${here}/e`)
assert.match(sandbox.domain(3000), /^https:\/\//)
await sandbox.extendTimeout(60000)
const found = await Sandbox.list({ ...params, tags: { who: 'sdk' } })
const names = []
for await (const one of found) names.push(one.name)
assert.deepEqual(names, ['sdk'])
await sandbox.update({ ports: [3000, 5173] })
await sandbox.stop()
const again = await Sandbox.get({ ...params, name: 'sdk' })
assert.deepEqual([...(await again.readFileToBuffer({ path: `${here}/d/bin` }))], [0, 1, 255, 10])
await again.delete()
await assert.rejects(Sandbox.get({ ...params, name: 'sdk' }))
console.log('the SDK is content')
process.exit(0)
