# What a client can do, with beaneater: ruby with_beaneater.rb HOST PORT TUBE

require 'beaneater'

HOST, PORT, TUBE = ARGV
Beaneater.configure { |config| config.default_put_ttr = 60 }

def client
  Beaneater.new("#{HOST}:#{PORT}").tap { |made| made.tubes.watch!(TUBE, "#{TUBE}.other") }
end

def counts(job)
  stats = job.stats
  %w[state pri reserves releases buries kicks timeouts].map { |name| "#{name} #{stats[name]}" }.join(' ')
end

queue = client
tube = queue.tubes[TUBE]
[['late', 30, 0], ['soon', 10, 0], ['next', 20, 0], ['asleep', 0, 1000]].each do |body, priority, delay|
  tube.put(body, pri: priority, delay: delay)
end
stats = tube.stats
puts "ready #{stats.current_jobs_ready}, of them urgent #{stats.current_jobs_urgent}, delayed #{stats.current_jobs_delayed}"

job = queue.tubes.reserve(0)
puts job.body
job.delete
job = queue.tubes.reserve(0)
puts job.body
job.release(pri: 40, delay: 0)
job = queue.tubes.reserve(0)
puts job.body
job.bury(pri: 50)

puts "buried #{tube.peek(:buried).body}, ready #{tube.peek(:ready).body}, delayed #{tube.peek(:delayed).body}"
puts "kicked #{tube.kick(10)[:id]}"
job = queue.tubes.reserve(0)
puts "#{job.body}: #{counts(job)}"
job.delete
job = queue.tubes.reserve(0)
job.touch
puts "#{job.body}: #{counts(job)}"
job.delete
begin
  job.delete
rescue Beaneater::NotFoundError
  puts 'deleted once'
end
begin
  queue.tubes.reserve(0)
rescue Beaneater::TimedOutError
  puts 'nothing is ready'
end

binary = (0..255).to_a.pack('C*') + "\r\n"
tube.put(binary)
job = queue.tubes.reserve(0)
puts "#{job.body.bytesize} bytes#{' as they were' if job.body.b == binary}"
job.delete
begin
  tube.put('.' * 65_536)
rescue Beaneater::JobTooBigError
  puts 'too big'
end

tube.put('of this tube', pri: 5)
queue.tubes["#{TUBE}.other"].put('of the other tube', pri: 4)
2.times do
  job = queue.tubes.reserve(0)
  puts job.body
  job.delete
end

tube.pause(1000)
tube.put('paused', delay: 1)
begin
  queue.tubes.reserve(0)
rescue Beaneater::TimedOutError
  puts 'nothing while paused'
end
tube.pause(1)
job = queue.tubes.reserve(20)
puts job.body
job.delete
tube.kick(1)
job = queue.tubes.reserve(0)
puts job.body
job.delete

tube.put('slow', pri: 60, ttr: 3)
queue.tubes.reserve(0)
begin
  queue.tubes.reserve(20)
rescue Beaneater::DeadlineSoonError
  puts 'hurry'
end
sleep 1.2
queue.stats.keys # a nudge: beanstalkd 1.12 sometimes misses that a time to run is over until its holder sends a command
other = client
job = other.tubes.reserve(20)
puts "#{job.body}: #{counts(job)}"
other.close
job = queue.tubes.reserve(20)
puts "#{job.body}: #{counts(job)}"
job.delete
