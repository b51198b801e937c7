// Runs a script of commands through ioredis and prints each reply's leaves on a
// line. See test/clients.
//
// usage: main.js HOST:PORT one|pipeline <commands
'use strict'

const { Redis } = require('ioredis')

function leaves (v) {
  if (v === null || v === undefined) return ['nil']
  if (v instanceof Error) return ['!']
  if (Array.isArray(v)) return v.flatMap(leaves)
  if (v instanceof Map) return [...v].flatMap(leaves)
  if (typeof v === 'object' && !Buffer.isBuffer(v)) return Object.entries(v).flatMap(leaves)
  return [String(v)]
}

async function main () {
  const [host, port] = process.argv[2].split(':')
  const commands = require('fs').readFileSync(0, 'utf8').trimEnd().split('\n').map(line => line.split(' '))
  // stringNumbers: JavaScript's own numbers hold 53 bits.
  const client = new Redis({ host, port: Number(port), stringNumbers: true, retryStrategy: null })

  let replies = []
  if (process.argv[3] === 'pipeline') {
    const pipeline = client.pipeline()
    for (const args of commands) pipeline.call(...args)
    replies = (await pipeline.exec()).map(([err, value]) => err || value)
  } else {
    for (const args of commands) {
      replies.push(await client.call(...args).catch(err => {
        if (err.name !== 'ReplyError') throw err
        return err
      }))
    }
  }
  for (const reply of replies) console.log(leaves(reply).join(' ') || 'empty')
  client.disconnect()
}

main().catch(err => {
  console.error(err)
  process.exit(1)
})
