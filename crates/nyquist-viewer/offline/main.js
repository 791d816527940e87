// The page in a file: the answers first, then the page that is served, too.

import {} from './begin.js';
import {} from '../assets/main.js';
