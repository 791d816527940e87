-- The ten functions that allocated most bytes of a service, over all hosts.
select function,
       round(sum(value) / 1e6, 1) as megabytes,
       round(100 * sum(value) / sum(sum(value)) over (), 1) as percent,
       count(distinct host) as hosts
from parquet.`profiles`
where service = 'shop' and kind = 'alloc_space'
group by function
order by megabytes desc, function
limit 10;
