// Takes the answers out of the file, before the page asks for them.

import { answerFrom } from '../assets/api.js';
import { createAnswers } from './answers.js';

answerFrom(createAnswers(JSON.parse(document.getElementById('answers')?.textContent ?? '')));
