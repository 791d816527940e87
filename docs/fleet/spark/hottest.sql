-- The ten functions in which a service spent most CPU time, over all hosts.
select function,
       round(sum(value) / 1e9, 2) as seconds,
       round(100 * sum(value) / sum(sum(value)) over (), 1) as percent,
       count(distinct host) as hosts
from parquet.`profiles`
where service = 'shop' and kind = 'cpu'
group by function
order by seconds desc, function
limit 10;
