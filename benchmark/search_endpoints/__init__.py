"""Search endpoints: addresses of search engines that answer queries, how they are asked and how their hits are read."""
